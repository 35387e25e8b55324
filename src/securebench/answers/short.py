"""A short answer's key: how the answer is read, what is accepted, how near a number must come."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Literal

from securebench.answers.dates import is_iso_date, read_date
from securebench.answers.numbers import Margin, read_number
from securebench.answers.sets import COMMA, MAX_ELEMENTS, SEMICOLON, read_set
from securebench.answers.slot import Slot, final_slot
from securebench.answers.text import read_text

Kind = Literal["number", "text", "set", "date"]
Accepted = int | float | str
Reader = Callable[[str], Hashable | None]


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What a short answer is compared with. `accepted` holds None where the pack's own answer cannot be read."""

    kind: Kind
    read: Reader
    accepted: tuple[Hashable | None, ...]
    margin: Margin

    def accepts(self, value: Hashable) -> bool:
        """Whether a value that `read` gave is right. Total: values of different types are different."""
        if isinstance(value, Fraction):
            return any(isinstance(right, Fraction) and self.margin.covers(value, right) for right in self.accepted)
        return value in self.accepted


def kind_of(accepted: Iterable[Accepted]) -> Kind:
    """The format of a row that declares none: `number` if every accepted answer is a JSON number, `date` if every
    one is an existing day written as YYYY-MM-DD, otherwise `text`. A set is never guessed, and text that looks
    like a number stays text."""
    answers = tuple(accepted)
    if not any(isinstance(answer, str) for answer in answers):
        return "number"
    if all(isinstance(answer, str) and is_iso_date(answer) for answer in answers):
        return "date"
    return "text"


def answer_key(kind: Kind, unit: str | None, accepted: tuple[Accepted, ...], margin: Margin) -> AnswerKey:
    """The key of one row. For `set`, the accepted answers are the elements of the one right set; they are
    compared as numbers if all of them are JSON numbers, otherwise as text."""
    element = _element_reader(kind, unit, accepted)
    values = tuple(element(written(answer)) for answer in accepted)
    if kind != "set":
        return AnswerKey(kind, element, values, margin)
    whole = None if None in values or len(set(values)) < len(values) else frozenset(values)
    return AnswerKey(kind, partial(read_set, read_element=element), (whole,), margin)


def _element_reader(kind: Kind, unit: str | None, accepted: tuple[Accepted, ...]) -> Reader:
    if kind == "number" or (kind == "set" and kind_of(accepted) == "number"):
        return partial(read_number, unit=unit)
    return read_date if kind == "date" else read_text


def written(answer: Accepted) -> str:
    """An accepted answer as an agent would write it: a JSON number by its shortest decimal digits."""
    return answer if isinstance(answer, str) else repr(answer)


_EXPECTED = {
    "number": "a number as the answer grammar reads it",
    "text": "one line of text without invisible characters",
    "set": "one element of the set: one line of text, or a number, without invisible characters",
    "date": "a date such as 2024-03-05, 2024-03 or 2024",
}


def unanswerable(kind: Kind, unit: str | None, accepted: tuple[Accepted, ...]) -> Iterable[tuple[int | None, str]]:
    """The accepted answers that no agent could give, each with the reason; an index of None means all of them.

    An answer that cannot be read as its format, that reads as something else in the final slot, or that cannot
    stand in a list would make its row impossible to pass."""
    element = _element_reader(kind, unit, accepted)
    values = [element(written(answer)) for answer in accepted]
    for index, (answer, value) in enumerate(zip(accepted, values, strict=True)):
        if value is None:
            yield index, f"expected {_EXPECTED[kind]}"
        elif any(_through_slot(form + written(answer), element) != value for form in ("", "Answer: ")):
            yield index, "reads as something else in a response (`**` around it and a leading `Answer:` are taken off)"
        elif kind == "set" and not _can_be_listed(written(answer), len(accepted)):
            yield index, "an element must not contain a semicolon, nor, as the only element, a comma"
    readable = [value for value in values if value is not None]
    if kind == "set" and len(set(readable)) < len(readable):
        yield None, "two elements of the set are the same answer"
    if kind == "set" and len(accepted) > MAX_ELEMENTS:
        yield None, f"expected at most {MAX_ELEMENTS} elements of a set, found {len(accepted)}"


def _through_slot(response: str, read: Reader) -> Hashable | None:
    slot = final_slot(response)
    return read(slot.text) if isinstance(slot, Slot) else None


def _can_be_listed(element: str, count: int) -> bool:
    return SEMICOLON not in element and (count > 1 or COMMA not in element)
