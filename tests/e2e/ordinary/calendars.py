import calendar
import datetime

print(calendar.TextCalendar().formatmonth(2024, 2))
print(calendar.isleap(2000), calendar.monthrange(2023, 2), datetime.date(2024, 2, 29).isocalendar())
