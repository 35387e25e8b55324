"""Ids: what the source says, made safe and unique by one rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.importers.ids import LONGEST, Ids, safe_id
from securebench.pack_schema import Manifest


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("HumanEval/0", "HumanEval/0"),
        ("  two  words ", "two_words"),
        ("a\x00b\u202ec", "a_b_c"),
        ("", "_"),
        ("\ud800", "_"),
        ("naïve ✓", "naïve_✓"),
    ],
)
def test_names_are_made_safe(text: str, wanted: str) -> None:
    assert safe_id(text) == wanted


def test_long_names_keep_their_beginning_and_stay_apart() -> None:
    first, second = safe_id("x" * 300 + "1"), safe_id("x" * 300 + "2")
    assert len(first) == len(second) == LONGEST
    assert first != second
    assert first.startswith("x" * 183)


@given(st.lists(st.text(alphabet="ab~2 \n", max_size=4), max_size=30))
def test_ids_are_unique_and_the_same_every_time(names: list[str]) -> None:
    def given_ids() -> list[str]:
        ids, found = Ids(), []
        for name in names:
            found.append(ids.free(name))
            ids.give(name, found[-1])
        return found

    first = given_ids()
    assert len(set(first)) == len(first)
    assert first == given_ids()


@given(st.text())
def test_every_safe_id_can_be_the_id_of_a_row(text: str) -> None:
    Manifest(id=safe_id(text), version=1)  # the same rule as for rows
