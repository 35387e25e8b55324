"""What a judge said, read as data: the whole reply is one object with one known word, or it is no verdict."""

from __future__ import annotations

from enum import StrEnum

from securebench import _json
from securebench.verifiers.judge.question import verdict_words

MAX_REPLY = 2000


class Vote(StrEnum):
    """One reply. `UNREADABLE` counts against the response: whoever confuses the judge gains nothing."""

    PASS = "pass"  # noqa: S105 — a word of the schema
    FAIL = "fail"
    UNREADABLE = "unreadable"


def read_vote(reply: str, mark: str) -> Vote:
    """The vote in a reply to the question with this mark. A verdict that is merely quoted, repeated or surrounded by
    words is none, nor is one without the mark."""
    if len(reply) > MAX_REPLY:
        return Vote.UNREADABLE
    try:
        value = _json.loads(reply.strip())
    except ValueError:
        return Vote.UNREADABLE
    votes = (Vote(verdict) for verdict, word in verdict_words(mark).items() if value == {"verdict": word})
    return next(votes, Vote.UNREADABLE)
