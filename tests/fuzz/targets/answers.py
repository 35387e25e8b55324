"""Answers as text: read by grammars that never raise, never guess and take no longer than they may."""

from __future__ import annotations

import json
from fractions import Fraction

from securebench.answers.dates import read_date
from securebench.answers.numbers import read_number
from securebench.answers.options import read_option, read_options
from securebench.answers.sets import read_set
from securebench.answers.slot import final_slot
from securebench.verifiers.judge.reply import Vote, read_vote

MARK = "5f0c"


def answers(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    slot = final_slot(text)
    assert slot == final_slot(text)
    number = read_number(text)
    assert number is None or type(number) is Fraction
    option = read_option(text, 4)
    if isinstance(option, int):
        assert 0 <= option < 4
        assert chr(ord("A") + option) in text.upper()
    chosen = read_options(text, 4)
    if isinstance(chosen, frozenset):
        assert chosen <= {0, 1, 2, 3}
    read_date(text)
    found = read_set(text, read_number)
    assert found is None or all(type(one) is Fraction for one in found)


def vote(data: bytes) -> None:
    """A pass is one object with one word, and the word holds the mark of its question."""
    text = data.decode("utf-8", "replace")
    if read_vote(text, MARK) is Vote.PASS:
        value = json.loads(text)
        assert list(value) == ["verdict"]
        assert MARK in value["verdict"]
