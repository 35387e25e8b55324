"""Calendar dates to the day, the month or the year, in spellings that mean one date only."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from securebench.answers.text import without_period

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTHS, 1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS, 1)
}

_MAX_LENGTH = 32
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})",
        r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})",
        r"(?P<year>[0-9]{4})",
        r"(?P<day>[0-9]{1,2}) (?P<name>[A-Za-z]+) (?P<year>[0-9]{4})",
        r"(?P<name>[A-Za-z]+) (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})",
        r"(?P<name>[A-Za-z]+) (?P<year>[0-9]{4})",
    )
)


@dataclass(frozen=True, slots=True)
class Date:
    """A day, a month (no `day`) or a year (neither). Equal only at the same precision."""

    year: int
    month: int | None = None
    day: int | None = None


def read_date(text: str) -> Date | None:
    """The date that `text` spells, or None.

    1. `2024-03-05`, `5 March 2024` or `March 5, 2024`; to the month `2024-03` or `March 2024`; to the year `2024`.
    2. English month names, whole or their first three letters, in any case; ASCII; single spaces.
    3. The day must exist in the calendar. All-numeric forms other than ISO 8601 say different days to different
       readers and are None, as are weekdays, times and ordinals.
    4. One period at the end is ignored.
    """
    if len(text) > _MAX_LENGTH:
        return None
    text = without_period(text)
    match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if match is None:
        return None
    parts = match.groupdict()
    month = _MONTH_NUMBERS.get(parts["name"].lower(), 0) if "name" in parts else _int(parts.get("month"))
    return _existing(int(parts["year"]), month, _int(parts.get("day")))


def is_iso_date(text: str) -> bool:
    """Whether `text` is an existing day written as YYYY-MM-DD."""
    return _FORMS[0].fullmatch(text) is not None and read_date(text) is not None


def _int(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


def _existing(year: int, month: int | None, day: int | None) -> Date | None:
    try:
        datetime.date(year, 1 if month is None else month, 1 if day is None else day)
    except ValueError:
        return None
    return Date(year, month, day)
