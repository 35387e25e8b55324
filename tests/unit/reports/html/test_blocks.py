"""Data in a page: what is packed is what is unpacked, and all of it keeps within its budget."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.reports.details import Bounds
from securebench.reports.html.blocks import LEVELS, pack, packed_tasks, unpack
from securebench.reports.html.nodes import as_html, facts, node

NOISE = random.Random(7)  # compresses badly


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])), st.lists
    )
)
def test_what_is_packed_is_unpacked(value: Any) -> None:
    text = pack(value)
    assert unpack(text) == value
    assert re.fullmatch(r"[A-Za-z0-9+/=]*", text), "nothing in it can end an element"


def _noise(length: int) -> str:
    return "".join(NOISE.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(length))


def test_every_task_is_at_its_place() -> None:
    blocks = packed_tasks(100, 3, lambda number, bounds: f"task {number}")
    assert [unpack(blocks.texts[n // blocks.size])[n % blocks.size] for n in range(100)] == [
        f"task {n}" for n in range(100)
    ]


@pytest.mark.parametrize("budget", [5_000, 50_000, 500_000])
def test_texts_are_cut_until_all_blocks_keep_within_the_budget(budget: int) -> None:
    texts = [_noise(5000) for _ in range(200)]
    blocks = packed_tasks(200, 1, lambda number, bounds: texts[number][: bounds.text], budget)
    assert sum(map(len, blocks.texts)) <= budget
    kept = [len(unpack(blocks.texts[n // blocks.size])[n % blocks.size]) for n in range(200)]
    assert max(kept) > 0 or budget == 5_000


def test_what_short_tasks_leave_is_for_long_ones() -> None:
    texts = ["short"] * 190 + [_noise(8000) for _ in range(10)]
    blocks = packed_tasks(200, 1, lambda number, bounds: texts[number][: bounds.text], 150_000)
    last = unpack(blocks.texts[199 // blocks.size])[199 % blocks.size]
    assert len(last) == 8000


def test_levels_only_ever_tell_less() -> None:
    for more, less in pairwise(LEVELS):
        assert (less.text, less.steps, less.listed) <= (more.text, more.steps, more.listed)
    assert LEVELS[-1] == Bounds(0, 0, 0)


def test_pieces_are_escaped_and_only_of_elements_we_know() -> None:
    hostile = '<script>alert("1")</script>\x1b[31m\u202e'
    piece = node(
        "details",
        'open" onclick="x',
        node("summary", "", hostile),
        node("pre", "", hostile),
        None,
        facts([(hostile, "v")]),
    )
    text = as_html(piece)
    assert "<script" not in text
    assert not set(text) & {"\x1b", "\u202e"}
    assert text.startswith('<details class="open&#34; onclick=&#34;x">')
    assert '<pre tabindex="0">' in text
    assert "<dt>&lt;script" in text
    with pytest.raises(ValueError, match="no page builds a script"):
        node("script")


def test_a_piece_that_is_to_be_open_is_open() -> None:
    assert as_html(node("details", "attempt open", "x")) == '<details class="attempt open" open>x</details>'
