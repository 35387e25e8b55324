"""Graders of text as they are found in the wild, each with the hole an attack needs. They read text and run none of
it, so they need no sandbox."""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from securebench.audit.suite.attack import End, Ground, Seen

Grader = Callable[[str, str], bool]
"""From a response and the right answer to a verdict."""


@dataclass(frozen=True, slots=True)
class Graded:
    """The same texts before a weak grader: each of them must pass there, or with `search` one of them."""

    grader: Grader
    right: str
    texts: tuple[str, ...]
    search: bool = False

    async def on(self, ground: Ground) -> Seen:  # noqa: ARG002 — the shape of a play
        fooled = [self.grader(text, self.right) for text in self.texts]
        detail = f"{self.grader.__name__} passed {sum(fooled)} of {len(fooled)}"
        return Seen(End.REACHED if (any if self.search else all)(fooled) else End.MISSED, detail)


def said_something(response: str, right: str) -> bool:  # noqa: ARG001
    """Any reply is taken for an answer."""
    return bool(response)


def right_contains_it(response: str, right: str) -> bool:
    """Containment the wrong way round: nothing is part of everything."""
    return response.strip().removeprefix("Answer:").strip("* ") in right


def no_field_differs(response: str, right: str) -> bool:
    """Looks for differences among the fields that are there."""
    try:
        value = json.loads(response)
    except ValueError:
        return False
    return not value or all(not given or given == right for given in value.values())


def first_letter(response: str, right: str) -> bool:
    match = re.search(r"[A-D]", response.upper())
    return match is not None and match[0] == right


def last_letter(response: str, right: str) -> bool:
    found = re.findall(r"\b[A-D]\b", response)
    return bool(found) and found[-1] == right


def letter_anywhere(response: str, right: str) -> bool:
    return right in response


def first_answer_line(response: str, right: str) -> bool:
    match = re.search(r"Answer: ?([A-D])", response)
    return match is not None and match[1] == right


def any_answer_line(response: str, right: str) -> bool:
    return right in (line.rpartition(":")[2].strip(" *") for line in response.splitlines())


def compatibility_folded(response: str, right: str) -> bool:
    visible = "".join(c for c in unicodedata.normalize("NFKC", response) if unicodedata.category(c) != "Cf")
    return visible.strip() == right


def closest_ascii(response: str, right: str) -> bool:
    """Letters that look alike are made alike, as tools against confusables do."""
    alike = str.maketrans("\u0392\u0412\u13f4\u0441\u0430\u0435\u043e\u0440\u2212\u2013", "BBBcaeop--")
    return response.translate(alike) == right


def letters_only(response: str, right: str) -> bool:
    """What is not ASCII is dropped, and so is what it changes."""
    return response.encode("ascii", "ignore").decode().strip() == right


def substring(response: str, right: str) -> bool:
    return right.lower() in response.lower()


def punctuation_stripped(response: str, right: str) -> bool:
    def bare(text: str) -> str:
        return "".join(c for c in text.lower() if c not in string.punctuation and not c.isspace())

    return bare(response) == bare(right)


def digits_only(response: str, right: str) -> bool:
    return re.sub(r"\D", "", response) == re.sub(r"\D", "", right)


def number_found(response: str, right: str) -> bool:
    match = re.search(r"-?\d+(?:\.\d+)?", response)
    return match is not None and float(match[0]) == float(re.sub(r"[^\d.-]", "", right))


def python_float(response: str, right: str) -> bool:
    """Whatever Python calls a number: digits of every script, underscores, blanks of every kind."""
    try:
        return float(response) == float(right)
    except ValueError:
        return False


def fail_if_far(response: str, right: str, tolerance: float = 0.01) -> bool:
    """`if diff > tolerance: fail` never fails for nan."""
    try:
        if abs(float(response) - float(right)) > tolerance:
            return False
    except ValueError:
        return False
    return True


def fail_if_relatively_far(response: str, right: str, tolerance: float = 0.01) -> bool:
    """The tolerance grows with the answer: infinity is within a share of infinity."""
    try:
        given, wanted = float(response), float(right)
    except ValueError:
        return False
    return not abs(given - wanted) > tolerance * max(abs(given), abs(wanted))


def case_folded(response: str, right: str) -> bool:
    return response.casefold() == right.casefold()


def token_recall(response: str, right: str) -> bool:
    words = set(re.findall(r"\w+", response.lower()))
    return set(re.findall(r"\w+", right.lower())) <= words


def says_and_does_not_reject(response: str, right: str) -> bool:
    """`right` is `accepted|rejected`; words end at spaces, and what is not spelt exactly was not said."""
    accepted, _, rejected = right.partition("|")
    words = response.split()
    return accepted in words and rejected not in words


def few_words(response: str, right: str) -> bool:
    """At most as much again beside the answer, counted by spaces."""
    words = response.split()
    return right in words and len(words) <= 2
