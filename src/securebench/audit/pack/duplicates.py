"""Rows that ask the same, or nearly."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from securebench import _json
from securebench.audit.pack.notes import Note
from securebench.audit.report.model import Mark
from securebench.families.multiple_choice import right_options
from securebench.pack_schema import AnyRow

FEWEST_WORDS = 12
"""A shorter text is like many others."""
ALIKE = 0.8
SKETCH, KEYS, CROWD = 24, 4, 64
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Duplicates:
    """One print of each row: the same input gives the same `whole`, a similar text a similar `sketch`."""

    prints: list[list[Any]] = field(default_factory=list)  # line, id, family, whole, answer, sketch

    def see(self, row: AnyRow, line: int) -> None:
        public = row.input.model_dump(mode="json", exclude_none=True)
        text = str(public.get("question") or public.get("prompt") or public.get("instructions") or "")
        words = _WORD.findall(text.lower())
        others = {name: value for name, value in public.items() if value is not text}
        if row.family == "multiple_choice":
            others["choices"] = sorted(row.input.choices)
        files = [[file.path, file.mount] for file in row.assets]
        whole = _hash([row.family, " ".join(text.lower().split()), others, files, row.environment.image])
        numbers = sorted(word for word in words if any(map(str.isdigit, word)))
        answer = _hash(_answer(row))
        self.prints.append([line, row.id, row.family, whole, answer, _sketch(words), _hash([numbers, others, files])])

    def state(self) -> Any:
        return self.prints

    def add(self, state: Any) -> None:
        self.prints += state

    def notes(self) -> Iterable[Note]:
        self.prints.sort(key=lambda one: one[0])
        first: dict[str, list[Any]] = {}
        for one in self.prints:
            line, task, family, whole, answer, *_ = one
            other = first.setdefault(whole, one)
            if other is one:
                continue
            if other[4] == answer or family not in ("multiple_choice", "short_answer"):
                yield Note("P40", f"asks the same as {other[1]} on line {other[0]}", line, task, family)
            else:
                detail = f"asks the same as {other[1]} on line {other[0]}, with another answer"
                yield Note("P40", detail, line, task, family, Mark.FAILED)
        yield from self._near([one for one in self.prints if first[one[3]] is one and one[5]])

    @staticmethod
    def _near(prints: list[list[Any]]) -> Iterable[Note]:
        shelves: dict[tuple[int, str, str], list[list[Any]]] = defaultdict(list)
        for one in prints:
            line, task, family, _, answer, sketch, rest = one
            keys = [(key, answer, rest) for key in sketch[:KEYS]]
            for other in {id(other): other for key in keys for other in shelves[key]}.values():
                if (alike := _alike(sketch, other[5])) >= ALIKE:
                    detail = f"is like {other[1]} on line {other[0]} ({alike:.0%}), with the same answer"
                    yield Note("P41", detail, line, task, family)
                    break
            for key in keys:
                if len(shelves[key]) < CROWD:
                    shelves[key].append(one)

    def looked(self) -> dict[str, str]:
        return dict.fromkeys(("P40", "P41"), f"{len(self.prints)} rows")


def _answer(row: AnyRow) -> Any:
    if row.family == "multiple_choice":
        return sorted(row.input.choices[index] for index in right_options(row.input.choices, row.eval.answer))
    return row.eval.model_dump(mode="json", exclude_unset=True)


def _hash(value: Any) -> str:
    return hashlib.blake2b(_json.dumps(value).encode(), digest_size=12).hexdigest()


def _sketch(words: list[str]) -> list[int]:
    """The smallest hashes of all runs of three words: a sample of them that is the same in texts that are alike."""
    if len(words) < FEWEST_WORDS:
        return []
    runs = {zlib.crc32(" ".join(words[start : start + 3]).encode()) for start in range(len(words) - 2)}
    return sorted(runs)[:SKETCH]


def _alike(one: list[int], other: list[int]) -> float:
    smallest = sorted({*one, *other})[:SKETCH]
    both = set(one) & set(other)
    return sum(value in both for value in smallest) / len(smallest)
