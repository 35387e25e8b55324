"""Answers by people who did not read the question: constants, and rules of thumb over public text.

One of them being right proves nothing, so what tells is the rate over all rows of a family, against chance."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from securebench.answers.options import LETTERS
from securebench.audit.pack.controls import text_judge
from securebench.audit.pack.notes import Note
from securebench.audit.report.model import Mark
from securebench.pack_schema import AnyRow

FEWEST = 20
"""Rows below which a rate says nothing."""
ABOVE, DEVIATIONS = 0.1, 4.0
"""How far above chance a rate must be to be told: by this much, and by so many standard deviations."""
FAR_ABOVE = 0.3
SHORT = ("0", "1", "2", "3", "4", "5", "10", "42", "100", "-1", "yes", "no", "true", "false", "none")
FREE = ("yes", "no", "true", "false", "I do not know")
CONSTANT, MOST_COMMON = "constant", "the most common answer"
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"[\"'“‘]([^\"'”’]+)[\"'”’]")

Guess = tuple[str, str]
"""What kind of guess, and the response."""


def guesses(row: AnyRow) -> Iterator[Guess]:
    """Every guess at a text row, from its public side only."""
    if row.family == "multiple_choice":
        yield from _choices(row.input.question, row.input.choices, row.input.multi_select)
    elif row.family == "short_answer":
        yield from ((f"{CONSTANT} {one!r}", one) for one in SHORT)
        yield from _numbers(row.input.question)
    elif row.family == "free_response":
        yield from ((f"{CONSTANT} {one!r}", one) for one in FREE)
        yield from _words(row.input.prompt)


def _choices(question: str, choices: tuple[str, ...], several: bool) -> Iterator[Guess]:
    letters = LETTERS[: len(choices)]
    yield from ((f"{CONSTANT} {letter!r}", letter) for letter in letters)
    if several:
        yield f"{CONSTANT} all letters", ", ".join(letters)
    indices = range(len(choices))
    asked = set(_WORD.findall(question.lower()))
    yield "the last option", letters[-1]
    yield "the longest option", letters[max(indices, key=lambda index: len(choices[index]))]
    yield "the shortest option", letters[min(indices, key=lambda index: len(choices[index]))]
    shared = [len(asked & set(_WORD.findall(choice.lower()))) for choice in choices]
    if max(shared) and shared.count(max(shared)) == 1:
        yield "the option most like the question", letters[shared.index(max(shared))]


def _numbers(question: str) -> Iterator[Guess]:
    found = [text.replace(",", "") for text in _NUMBER.findall(question)][:50]
    if not found:
        return
    yield "the first number of the question", found[0]
    yield "the last number of the question", found[-1]
    yield "the largest number of the question", max(found, key=float)
    if len(found) > 1 and all("." not in text and len(text) < 15 for text in found):
        values = [int(text) for text in found]
        yield "the sum of the numbers", str(sum(values))
        yield "the difference of the first two numbers", str(values[0] - values[1])
        yield "the product of the first two numbers", str(values[0] * values[1])


def _words(prompt: str) -> Iterator[Guess]:
    words = _WORD.findall(prompt)
    if words:
        yield "the last word of the prompt", words[-1]
    if quoted := _QUOTED.findall(prompt):
        yield "the last quotation of the prompt", quoted[-1]


def chance(row: AnyRow) -> float:
    """What blind choice scores on a row."""
    if row.family != "multiple_choice":
        return 0.0
    right = row.eval.answer if isinstance(row.eval.answer, tuple) else (row.eval.answer,)
    return len(right) / len(row.input.choices) if not row.input.multi_select else 0.5 ** len(row.input.choices)


def answers(row: AnyRow) -> set[str]:
    """The accepted answers of a text row that could be given to another row as well."""
    if row.family == "short_answer":
        return {str(answer).strip().lower() for answer in row.eval.accepted_answers}
    if row.family == "free_response" and row.eval.rubric.type == "contains_any":
        return {answer.strip().lower() for answer in row.eval.rubric.accepted_answers}
    return set()


@dataclass(slots=True)
class Guesses:
    """Counts of right guesses, by family and kind."""

    rows: Counter[str] = field(default_factory=Counter)
    chance: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)  # "family\tkind"
    given: Counter[str] = field(default_factory=Counter)  # "family\tanswer"

    def see(self, row: AnyRow, line: int) -> None:  # noqa: ARG002 — a rate has no line
        judge = text_judge(row)
        if judge is None:
            return
        self.rows[row.family] += 1
        self.chance[row.family] += chance(row)  # type: ignore[assignment]  # a sum of chances
        for kind, response in guesses(row):
            if judge(response).passed:
                self.right[f"{row.family}\t{kind}"] += 1
        for answer in answers(row):
            self.given[f"{row.family}\t{answer}"] += 1

    def state(self) -> Any:
        return [dict(counter) for counter in (self.rows, self.chance, self.right, self.given)]

    def add(self, state: Any) -> None:
        for counter, other in zip((self.rows, self.chance, self.right, self.given), state, strict=True):
            counter.update(other)

    def notes(self) -> Iterable[Note]:
        for family, rows in self.rows.items():
            expected = self.chance[family] / rows
            rates = {kind: right for kind, right in self._of(family, self.right).items() if right}
            most = self._of(family, self.given).most_common(1)
            if most and most[0][1] > 1:
                rates[f"{CONSTANT}: {MOST_COMMON}, {most[0][0][:60]!r},"] = most[0][1]
            for kind, right in rates.items():
                if mark := judged(right, rows, expected):
                    rule = "P03" if kind.startswith(CONSTANT) else "P04"
                    detail = f"{kind} is right in {right / rows:.0%} of {rows} rows; chance is {expected:.0%}"
                    yield Note(rule, detail, column=family, mark=mark)

    def looked(self) -> dict[str, str]:
        told = ", ".join(f"{count} rows of {family}" for family, count in self.rows.items() if count >= FEWEST)
        if not self.rows:
            return {}
        few = f"too few rows for a rate: {FEWEST} of a family are needed"
        return dict.fromkeys(("P03", "P04"), f"no rate far above chance in {told}" if told else few)

    @staticmethod
    def _of(family: str, counter: Counter[str]) -> Counter[str]:
        kinds = {key.partition("\t")[2]: count for key, count in counter.items() if key.startswith(f"{family}\t")}
        return Counter(kinds)


def judged(right: int, rows: int, expected: float) -> Mark | None:
    """What a rate weighs; None where it may be chance, or is none to speak of."""
    if rows < FEWEST:
        return None
    deviation = math.sqrt(rows * max(expected * (1 - expected), 0.01))
    if right / rows < expected + ABOVE or right - rows * expected < DEVIATIONS * deviation:
        return None
    return Mark.FAILED if right / rows >= expected + FAR_ABOVE else Mark.WARNING
