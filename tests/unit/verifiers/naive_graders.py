"""Graders as they are found in the wild. Each is fooled by an attack that the verifiers here must withstand:
the positive controls that show the attacks to be real."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable


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


def compatibility_folded(response: str, right: str) -> bool:
    visible = "".join(c for c in unicodedata.normalize("NFKC", response) if unicodedata.category(c) != "Cf")
    return visible.strip() == right


def substring(response: str, right: str) -> bool:
    return right.lower() in response.lower()


def punctuation_stripped(response: str, right: str) -> bool:
    def bare(text: str) -> str:
        return "".join(c for c in text.lower() if c not in string.punctuation and not c.isspace())

    return bare(response) == bare(right)


def fail_if_far(response: str, right: str, tolerance: float = 0.01) -> bool:
    """`if diff > tolerance: fail` never fails for nan."""
    try:
        if abs(float(response) - float(right)) > tolerance:
            return False
    except ValueError:
        return False
    return True


def evaluated(response: str, right: str) -> bool:
    try:
        return bool(eval(response, {}) == float(right))
    except Exception:  # noqa: BLE001 — the sloppiness under test
        return False


def first_number(response: str, right: str) -> bool:
    match = re.search(r"-?\d+(?:\.\d+)?", response)
    return match is not None and float(match[0]) == float(right)


def case_folded(response: str, right: str) -> bool:
    return response.casefold() == right.casefold()


def token_recall(response: str, right: str) -> bool:
    words = set(re.findall(r"\w+", response.lower()))
    return set(re.findall(r"\w+", right.lower())) <= words


Grader = Callable[[str, str], bool]
