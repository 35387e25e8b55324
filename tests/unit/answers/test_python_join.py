"""A completion and the code its task starts with: behind it byte for byte, or whole."""

from __future__ import annotations

from typing import Any

import pytest

from securebench.answers.python_join import Joined, completed

PROMPT = '''from typing import List


def half(x):
    return x / 2


def total(values: List[int]) -> float:
    """Sum of all values."""
'''
WHOLE = "def total(values: List[int]) -> float:\n    return half(2 * sum(values))\n"


def run(source: str, call: str) -> Any:
    """Only tests run the outcome, and only of programs written here."""
    space: dict[str, Any] = {}
    exec(source, space)
    return eval(call, space)


def test_continuation_stands_behind_the_prompt_byte_for_byte() -> None:
    text, how = completed("    return sum(values)\n", None, PROMPT, "total")
    assert (text, how) == (PROMPT + "    return sum(values)\n", Joined.CONTINUED)
    assert run(text, "total([1, 2])") == 3


@pytest.mark.parametrize("text", ["return sum(values)", "```python\n    return 1\n```", "", "  def total(v): return 1"])
def test_nothing_is_repaired(text: str) -> None:
    assert completed(text, None, PROMPT, "total") == (PROMPT + text, Joined.CONTINUED)


def test_whole_function_gets_the_imports_and_helpers_of_the_prompt() -> None:
    text, how = completed(WHOLE, None, PROMPT, "total")
    assert how is Joined.AFTER_PREAMBLE
    assert run(text, "total([1, 2])") == 3
    assert text.count("def total") == 1


def test_whole_program_stands_alone() -> None:
    assert completed(PROMPT + "    return 1\n", None, PROMPT, "total") == (PROMPT + "    return 1\n", Joined.ALONE)


def test_another_function_behind_the_body_is_no_whole_program() -> None:
    text, how = completed("    return helper()\n\ndef helper():\n    return 7\n", None, PROMPT, "total")
    assert how is Joined.CONTINUED
    assert run(text, "total([])") == 7


def test_starter_code_comes_before_the_prompt() -> None:
    text, how = completed("    return 5\n", "def total(values):\n", "Add them up.", "total")
    assert (text, how) == ("def total(values):\n    return 5\n", Joined.CONTINUED)


@pytest.mark.parametrize("entry", ["total", None])
def test_prompt_of_prose_begins_no_program(entry: str | None) -> None:
    assert completed("total = sum", None, "Write total(values).", entry) == ("total = sum", Joined.ALONE)
