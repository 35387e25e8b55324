"""Attempts as bits say what a set of pairs says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from securebench.engine.attempt_set import AttemptSet

KEYS = st.tuples(st.sampled_from("abc"), st.integers(1, 40))


@given(st.lists(KEYS), KEYS)
def test_attempt_set_is_a_set(keys: list[tuple[str, int]], other: tuple[str, int]) -> None:
    kept = AttemptSet(keys)
    assert len(kept) == len(set(keys))
    assert all(key in kept for key in keys)
    assert (other in kept) == (other in set(keys))
