"""Text from strangers on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.cli._text import one_line, visible


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain ü 日本 😀", "plain ü 日本 😀"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\x0db"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\x00\x07\x7f", "\\x00\\x07\\x7f"),
        ("a\u2028b", "a\\u2028b"),
        ("\u00a0", "\u00a0"),
        ("a\u3164b\u2800\u115f", "a\\u3164b\\u2800\\u115f"),
        ("a\u034fb\U000e0101", "a\\u034fb\\U000e0101"),
        ("❤\ufe0f", "❤\ufe0f"),
    ],
)
def test_control_and_invisible_characters_become_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_nothing_a_terminal_obeys_survives(text: str) -> None:
    shown = visible(text)
    assert not any(ord(char) < 32 and char not in "\n\t" for char in shown)
    assert all(char.isprintable() or char.isspace() for char in shown)
    shown.encode("utf-8")


@given(st.text(st.characters()), st.integers(min_value=2, max_value=50))
def test_one_line_is_one_line_and_fits(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1


def test_cut_line_says_so() -> None:
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("a  b\n c", 10) == "a b c"
