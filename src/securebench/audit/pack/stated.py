"""Answers that the public side of a text row gives away: said outright, spelled in metadata, or told by a field.

What one row shows may be chance; a cue or a field that is right in nearly every row is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from securebench.answers.options import LETTERS
from securebench.audit.pack.controls import Judge, text_judge
from securebench.audit.pack.leaks import PLAIN, Leak, Secret, find_leaks
from securebench.audit.pack.notes import Note
from securebench.audit.report.model import Mark
from securebench.families.free_response import ContainsAnyRubric
from securebench.families.multiple_choice import right_options
from securebench.pack_schema import AnyRow

NEARLY_ALL = 0.8
FEWEST = 5
"""Rows from which a field that is always right needs no telling name."""
READING = ("input.context",)
"""Fields that are there to be read: an answer in them is what the task is about."""
_CUE = re.compile(
    r"(?i)\b(?:answer|solution|correct\s+(?:option|choice|answer|response)|gold|ground[ _]truth|expected(?:\s+\w+)?)"
    r"\s*(?:is|was|:|=|->|=>)\s*[*_`\"'(\[]*(?P<said>[^\n;*)\]\"'`]{1,80})"
)
_TELLING_NAME = re.compile(r"(?i)answer|solution|label|gold|correct|target|truth|expected|\bkey\b")
_ID_PARTS = re.compile(r"[^\W_]+")
_MOST_CUES, _MOST_FIELDS, _DEEPEST = 20, 100, 4


def public_texts(row: AnyRow) -> dict[str, str]:
    """The texts of `input`, by field."""
    values = row.input.model_dump(mode="json", exclude_none=True)
    return {f"input.{name}": value for name, value in values.items() if isinstance(value, str)}


def metadata_fields(row: AnyRow) -> Iterator[tuple[str, str]]:
    """Every plain value of the metadata, and every part of the id, by place."""
    yield from _leaves("metadata", row.metadata, 0)
    for number, part in enumerate(reversed(_ID_PARTS.findall(row.id)[-3:]), 1):
        yield f"part {number} of the id, from its end", part


def _leaves(place: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth < _DEEPEST:
        for key, item in list(value.items())[:_MOST_FIELDS]:
            yield from _leaves(f"{place}.{key}", item, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for item in value[:_MOST_FIELDS]:
            yield from _leaves(place, item, depth + 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield place, str(value)


def secrets(row: AnyRow) -> list[Secret]:
    """The hidden texts of a text row; the right option of a choice stands in public, and has to."""
    extra = row.eval.__pydantic_extra__ or {}
    found = [Secret(f"eval.{name}", text) for name, value in extra.items() for _, text in _leaves(name, value, 0)]
    if row.family == "short_answer":
        found += [Secret("eval.accepted_answers", str(answer)) for answer in row.eval.accepted_answers]
    elif row.family == "free_response":
        rubric, reference = row.eval.rubric, row.eval.reference_answer
        answers = rubric.accepted_answers if isinstance(rubric, ContainsAnyRubric) else (rubric.criteria,)
        found += [Secret("eval.rubric", answer) for answer in answers]
        found += [Secret("eval.reference_answer", reference)] if isinstance(reference, str) else []
    return found


def _says(row: AnyRow, judge: Judge, said: str) -> bool:
    said = said.strip().rstrip(".,!:")
    if row.family == "multiple_choice" and not row.input.multi_select:
        right = right_options(row.input.choices, row.eval.answer)
        if said in {row.input.choices[index] for index in right} | {LETTERS[index] for index in right}:
            return True
        return any(said.startswith(f"{LETTERS[index]} ") or said.startswith(f"{LETTERS[index]}.") for index in right)
    return judge(said).passed


@dataclass(slots=True)
class Stated:
    """What the rows gave away, and how often cues and fields were right."""

    rows: int = 0
    readers: int = 0  # rows with something to read
    read_off: int = 0  # of them, those whose answer stands in it
    cues: list[int] = field(default_factory=lambda: [0, 0])
    fields: Counter[str] = field(default_factory=Counter)
    right_fields: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[Any]] = field(default_factory=dict)  # field -> the line and id of the first right one
    said: list[Note] = field(default_factory=list)  # by cues
    found: list[Note] = field(default_factory=list)

    def see(self, row: AnyRow, line: int) -> None:
        if row.family not in ("multiple_choice", "short_answer", "free_response"):
            return
        self.rows += 1
        texts = public_texts(row)
        judge = text_judge(row)
        if judge is not None:
            self._cues(row, line, judge, texts)
            self._fields(row, line, judge)
        self.readers += any(name in texts for name in READING)
        metadata = "\n".join(value for _, value in _leaves("metadata", row.metadata, 0))
        for leak in find_leaks(secrets(row), texts | {"metadata": metadata, "id": row.id}):
            if leak.place not in texts:
                self.found.append(_note("A01", leak, row, line, Mark.FAILED if leak.sure else Mark.WARNING))
            elif leak.place in READING and leak.form == PLAIN:
                self.read_off += 1
            else:
                self.found.append(_note("A08", leak, row, line, Mark.WARNING))

    def _cues(self, row: AnyRow, line: int, judge: Judge, texts: dict[str, str]) -> None:
        for place, text in texts.items():
            said = {match["said"].strip() for match, _ in zip(_CUE.finditer(text), range(_MOST_CUES), strict=False)}
            said.discard("")
            if said:
                self.cues[0] += 1
                if all(_says(row, judge, one) for one in said):
                    self.cues[1] += 1
                    detail = f"{place} says it outright, as in `answer: …`"
                    self.said.append(Note("A08", detail, line, row.id, row.family))

    def _fields(self, row: AnyRow, line: int, judge: Judge) -> None:
        keys: set[str] = set()
        if row.family == "multiple_choice":
            right = right_options(row.input.choices, row.eval.answer)
            keys = {LETTERS[index] for index in right} | {row.input.choices[index] for index in right}
        for place, value in list(metadata_fields(row))[:_MOST_FIELDS]:
            told = value in keys or judge(value).passed
            forms = {place: told}
            if row.family == "multiple_choice" and value.isdecimal() and len(value) < 10:
                forms = {
                    f"{place}, counted from 0,": any(int(value) == index for index in right),
                    f"{place}, counted from 1,": any(int(value) == index + 1 for index in right),
                }
            for name, is_right in forms.items():
                self.fields[name] += 1
                self.right_fields[name] += is_right
                if is_right:
                    self.first.setdefault(name, [line, row.id])

    def state(self) -> Any:
        said, found = ([note.as_json() for note in notes] for notes in (self.said, self.found))
        numbers = [self.rows, self.readers, self.read_off, *self.cues]
        return [numbers, dict(self.fields), dict(self.right_fields), self.first, said, found]

    def add(self, state: Any) -> None:
        (rows, readers, read_off, cues, right_cues), fields, right_fields, first, said, found = state
        self.rows, self.readers, self.read_off = self.rows + rows, self.readers + readers, self.read_off + read_off
        self.cues = [self.cues[0] + cues, self.cues[1] + right_cues]
        self.fields.update(fields)
        self.right_fields.update(right_fields)
        for name, place in first.items():
            self.first[name] = min(place, self.first.get(name, place))
        self.said += map(Note.from_json, said)
        self.found += map(Note.from_json, found)

    def notes(self) -> Iterable[Note]:
        yield from self.found
        if self.cues[1] >= NEARLY_ALL * max(1, self.cues[0]):  # else they are examples, or a form to fill in
            yield from self.said
        if self.read_off and self.read_off < self.readers / 2:
            detail = f"in {self.read_off} of {self.readers} rows with a context, the answer stands in it"
            yield Note("A08", detail, mark=Mark.WARNING)
        for name, count in self.fields.items():
            right = self.right_fields[name]
            known = count >= FEWEST or (right == count and _TELLING_NAME.search(name.partition(" of the id")[0]))
            if known and right >= NEARLY_ALL * count:
                line, task = self.first[name]
                yield Note("P11", f"{name} is the answer in {right} of {count} rows", line, task)

    def looked(self) -> dict[str, str]:
        if not self.rows:
            return {}
        extra = f"; {self.read_off} of {self.readers} answers stand in the text to be read" if self.readers else ""
        return {
            "A01": f"metadata and ids of {self.rows} text rows",
            "A08": f"the public text of {self.rows} text rows{extra}",
            "P11": f"{len(self.fields)} fields of {self.rows} text rows",
        }


def _note(rule: str, leak: Leak, row: AnyRow, line: int, mark: Mark) -> Note:
    return Note(rule, str(leak), line, row.id, row.family, mark)
