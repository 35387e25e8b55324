from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

zone = ZoneInfo("Europe/Berlin")
before = datetime(2024, 3, 31, 0, 30, tzinfo=zone)
print(before.isoformat(), (before + timedelta(hours=3)).isoformat(), before.tzname())
print(before.astimezone(ZoneInfo("America/New_York")).isoformat())
try:
    ZoneInfo("Nowhere/Land")
except ZoneInfoNotFoundError:
    print("no such zone")
