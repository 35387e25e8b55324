"""How rows ask: a row's own text in the words of a prompt, with solved rows of another source before it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from securebench.answers.options import LETTERS
from securebench.answers.short import written
from securebench.errors import ConfigError
from securebench.families.multiple_choice import right_options
from securebench.importers.base import CannotConvert, PackRow
from securebench.importers.prompts import EXAMPLES, QUESTION, WORKED, Prompt, example_template

MAIN = ("question", "prompt", "instructions")
SUBJECT = "subject"
SOLUTION = "worked_solution"
"""The hidden field in which formats keep the way to an answer."""
_MOST_SUBJECTS = 10_000


@dataclass(slots=True)
class Shots:
    """Solved rows to be shown: the first few of each family and subject, in the order of their source. `family` is that
    of rows that name none; None where all do."""

    count: int
    family: str | None
    worked: bool
    _by_subject: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _questions: set[str] = field(default_factory=set)  # of those that are shown, as they are compared

    def fill(self, rows: Iterable[PackRow]) -> None:
        """Raises ConfigError where there is nothing to be shown."""
        if self.family is not None:
            self._template(self.family)
        for row in rows:
            shown = self._by_subject.setdefault(self._kind(row), [])
            if len(shown) < self.count:
                shown.append(self._template(self._kind(row)[0]).render(**_solved(row, self.worked)))
                self._questions.add(_alike(_question(row)))
            if len(self._by_subject) > _MOST_SUBJECTS:
                raise ConfigError(f"the examples have more than {_MOST_SUBJECTS} subjects")
            if self.family and len(self._by_subject) == 1 and not _subject(row) and len(shown) == self.count:
                return  # there is no subject, and there is enough
        if not self._by_subject:
            raise ConfigError("the examples hold no row that could be shown")

    def before(self, row: PackRow) -> str:
        """What is shown before a row. Raises CannotConvert for one that is shown itself, if spelt a little differently,
        so that its answer is public, and where its subject has no examples."""
        if _alike(_question(row)) in self._questions:
            raise CannotConvert("is one of the examples that prompts show")
        family, subject = self._kind(row)
        shown = self._by_subject.get((family, subject), [])
        if len(shown) < self.count:
            what = "subject" if subject else "family"
            raise CannotConvert(f"has fewer than {self.count} examples of its {what}", subject or family)
        return "\n\n".join(shown)

    def _kind(self, row: PackRow) -> tuple[str, str]:
        return row.family or self.family or "", _subject(row)

    def _template(self, family: str) -> Prompt:
        template = example_template(family, self.worked)
        if template is None:
            raise ConfigError(f"rows of {family} have no few-shot prompt; multiple_choice and short_answer do")
        return template


@dataclass(frozen=True, slots=True)
class Asker:
    """Puts rows into the words of a prompt."""

    prompt: Prompt
    shots: Shots | None = None

    def ask(self, row: PackRow) -> PackRow:
        """Raises CannotConvert."""
        prompt = self.prompt.of(row.family)
        if prompt is None:
            raise CannotConvert(f"rows of {row.family} have no prompt {self.prompt.variant}")
        if prompt.template == f"${QUESTION}":
            return row
        name = _main(row)
        words = {**row.words, QUESTION: str(row.input[name])}
        if self.shots is not None:
            words |= dict.fromkeys((EXAMPLES, WORKED), self.shots.before(row))
        missing = sorted(prompt.words - words.keys())
        if missing:
            raise CannotConvert(f"has nothing for ${missing[0]} of the prompt")
        return replace(row, input={**row.input, name: prompt.render(**words)})


def _main(row: PackRow) -> str:
    """Raises CannotConvert."""
    found = next((name for name in MAIN if name in row.input), None)
    if found is None:
        raise CannotConvert("has nothing that a prompt could ask", f"expected {', '.join(MAIN)}")
    return found


def _question(row: PackRow) -> str:
    return str(row.input[_main(row)])


def _alike(question: str) -> str:
    """What two questions have in common that a reader takes for the same: no compatibility forms, no case, no invisible
    characters, single blanks, nothing of what a sentence ends with."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", question).casefold())
    kept = "".join(char for char in folded if unicodedata.category(char) != "Cf")
    return " ".join(kept.split()).rstrip(" .?!:;,…\"'") or question


def _subject(row: PackRow) -> str:
    return str(row.metadata.get(SUBJECT) or "")


def _solved(row: PackRow, worked: bool) -> dict[str, str]:
    """The words of a solved row. Raises ConfigError where it has nothing to show."""
    private: Any = row.eval
    words = {QUESTION: _question(row), "solution": str(private.get(SOLUTION) or "")}
    if worked and not words["solution"]:
        raise ConfigError(f"example {row.id}: has no worked solution; choose a prompt that shows answers only")
    try:
        return words | (_chosen(row) if "choices" in row.input else {"answer": written(private["accepted_answers"][0])})
    except (LookupError, TypeError, ValueError):  # nobody has checked the row yet
        raise ConfigError(f"example {row.id}: has no answer that could be shown") from None


def _chosen(row: PackRow) -> dict[str, str]:
    choices: Any = row.input["choices"]
    answer: Any = row.eval["answer"]
    right = right_options(tuple(choices), tuple(answer) if isinstance(answer, list) else answer)
    return {
        "choices": "\n".join(f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False)),
        "answer": ", ".join(LETTERS[index] for index in sorted(right)),
    }
