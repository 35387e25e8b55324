from datetime import date, datetime, timedelta, timezone

start = datetime(2024, 2, 28, 23, 30, tzinfo=timezone.utc)  # noqa: UP017
print(start + timedelta(days=1, hours=1), (start - datetime(2000, 1, 1, tzinfo=start.tzinfo)).total_seconds())
print(start.isoformat(), datetime.fromisoformat("2024-05-06T07:08:09+02:00").utctimetuple()[:6])
print(start.strftime("%A %d %B %Y, week %V"), datetime.strptime("3 Mar 2021", "%d %b %Y").date())
print(date.fromordinal(738000), date(2024, 12, 30).weekday(), timedelta(minutes=90) / 4)
