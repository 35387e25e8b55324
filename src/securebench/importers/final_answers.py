"""Answer keys from text: what a source writes as its answer, as the accepted answers of a `short_answer` row.

A row says in public how its answer is read only where all rows of its format say the same: which kind of answer a
question has is a part of the answer."""

from __future__ import annotations

from fractions import Fraction

from securebench import _json
from securebench._json import Json
from securebench.answers.dates import read_date
from securebench.answers.numbers import read_number
from securebench.importers.base import CannotConvert

MAX_EXACT = 2**53


def number_answer(text: str, field: str) -> int | float | str:
    """A number of the answer grammar as a row writes it: a JSON number where that is exact, else its text. Raises
    CannotConvert for text that is no number."""
    cleaned = text.strip()
    value = read_number(cleaned)
    if value is None:
        raise CannotConvert(f"{field} is no number", f"{len(cleaned)} characters", field)
    exact = as_json_number(value)
    return cleaned if exact is None else exact


def as_json_number(value: Fraction) -> int | float | None:
    """The JSON number that is read as exactly this; None where there is none."""
    if value.denominator == 1:
        return int(value) if abs(value) < MAX_EXACT else None
    try:
        near = float(value)
    except OverflowError:
        return None
    return near if Fraction(repr(near)) == value else None


def accepted_answers(texts: list[str]) -> list[Json]:
    """Answers that the source gives as text, each of them right: JSON numbers where all are written as numbers are, ISO
    days where all are days, else the texts. A row that has them need not say which."""
    cleaned = [text.strip() for text in texts]
    numbers = [plain_number(text) for text in cleaned]
    if all(number is not None for number in numbers):
        return list(dict.fromkeys(numbers))
    days = [iso_day(text) for text in cleaned]
    if all(day is not None for day in days):
        return list(dict.fromkeys(days))
    return list(dict.fromkeys(cleaned))


def plain_number(text: str) -> int | float | None:
    """The JSON number that is written just so, but for commas between thousands; None for all else. `007`, `1.10` and
    `+49` can be a postcode, a version or a prefix, of which no digit may be lost."""
    value = read_number(text)
    number = None if value is None else as_json_number(value)
    return number if number is not None and _json.dumps(number) == text.replace(",", "") else None


def iso_day(text: str) -> str | None:
    """A day that the answer grammar reads, as YYYY-MM-DD; None for anything else, a month or a year included."""
    read = read_date(text)
    if read is None or read.month is None or read.day is None:
        return None
    return f"{read.year:04}-{read.month:02}-{read.day:02}"
