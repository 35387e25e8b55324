"""What judging a text answer gives: passed or not, why, and which rule decided."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from securebench.errors import FailureReason

MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class TextVerdict:
    """One decision. `rule` names what decided; `answer` is the candidate's own answer as it was read."""

    passed: bool
    rule: str
    reason: FailureReason | None = None
    answer: str | None = None

    def __post_init__(self) -> None:
        if self.passed != (self.reason is None):
            raise ValueError("a verdict has a failure reason exactly when it did not pass")

    @property
    def metadata(self) -> dict[str, str]:
        """For the record. Holds nothing that only the pack knows."""
        shown = {} if self.answer is None else {"answer": self.answer[:MAX_SHOWN]}
        return {**shown, "rule": self.rule}


@lru_cache(maxsize=64)
def passed(rule: str, answer: str | None = None) -> TextVerdict:
    return TextVerdict(True, rule, None, answer)


@lru_cache(maxsize=64)
def no_answer(rule: str) -> TextVerdict:
    return TextVerdict(False, rule, FailureReason.NO_ANSWER)


@lru_cache(maxsize=64)
def malformed(rule: str) -> TextVerdict:
    return TextVerdict(False, rule, FailureReason.MALFORMED_ANSWER)


@lru_cache(maxsize=64)
def ambiguous(rule: str) -> TextVerdict:
    return TextVerdict(False, rule, FailureReason.AMBIGUOUS_ANSWER)


@lru_cache(maxsize=64)
def wrong(rule: str, answer: str | None = None) -> TextVerdict:
    return TextVerdict(False, rule, FailureReason.WRONG_ANSWER, answer)
