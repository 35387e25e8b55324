from __future__ import annotations

from typing import Any

import pytest

from securebench.answers.instructions import FINAL_SLOT, answer_instructions


def test_letters_named_are_those_of_the_options() -> None:
    text = answer_instructions("multiple_choice", {"question": "?", "choices": ["x", "y", "z"]})
    assert text.startswith(FINAL_SLOT)
    assert "A to C" in text
    assert "exactly one" in text
    assert "all right options" in answer_instructions("multiple_choice", {"choices": ["x", "y"], "multi_select": True})


@pytest.mark.parametrize(
    "answer_format, words",
    [
        ("number", "1,234.5"),
        ({"type": "number", "unit": "km"}, "`km` may follow"),
        ({"type": "number", "unit": "%"}, "changes nothing"),
        ({"type": "number", "unit": None}, "50% (which is 0.5)"),
        ("text", "the text itself"),
        ("set", "in any order"),
        ("date", "2024-03-05"),
    ],
)
def test_declared_format_is_described(answer_format: Any, words: str) -> None:
    assert words in answer_instructions("short_answer", {"question": "?", "answer_format": answer_format})


def test_only_a_declared_unit_is_named() -> None:
    plain = answer_instructions("short_answer", {"question": "?", "answer_format": "number"})
    assert "may follow" not in plain
    assert plain == answer_instructions("short_answer", {"answer_format": {"type": "number", "unit": None}})
    percent = answer_instructions("short_answer", {"answer_format": {"type": "number", "unit": "%"}})
    assert "1 3/4 (in lowest terms), in percent; the sign `%` may follow" in percent


def test_undeclared_format_is_described_without_a_hint_at_the_hidden_type() -> None:
    text = answer_instructions("short_answer", {"question": "?"})
    assert text == answer_instructions("short_answer", {"question": "other", "answer_format": None})
    assert "number" in text
    assert "date" in text
    assert "text" in text


def test_families_without_text_answers_have_no_instructions() -> None:
    assert answer_instructions("repo_patch", {}) == ""
    assert "whole response" in answer_instructions("free_response", {"prompt": "?"})
