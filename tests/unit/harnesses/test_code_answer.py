"""From a reply to a program: the one block or the whole text, joined to what the task starts with."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.answers.python_join import Joined
from securebench.errors import CandidateError, FailureReason
from securebench.harnesses.code_answer import code_answer, patch_answer

HEAD = '''from typing import List


def poly(xs: list, x: float):
    """Evaluates."""
    return sum(c * x**i for i, c in enumerate(xs))


def total(values: List[int]) -> int:
    """Sum of all values.
    >>> total([1, 2])
    3
    """
'''
BODY = "    result = 0\n    for value in values:\n        result += value\n    return result\n"
FUNCTION = "def total(values):\n    return sum(values)\n"


def public(**fields: Any) -> dict[str, Any]:
    return {"prompt": HEAD, "language": "python", "entry_point": "total"} | fields


def run(source: str, call: str) -> Any:
    """Only tests run the outcome, and only of programs written here."""
    space: dict[str, Any] = {}
    exec(source, space)
    return eval(call, space)


FIRST_LINE_LOST = BODY.lstrip()
DEDENTED = "result = 0\nfor value in values:\n    result += value\nreturn result"
DEEPER = "".join(f"        {line}\n" for line in DEDENTED.splitlines())


@pytest.mark.parametrize(
    ("answer", "how"),
    [
        (BODY, Joined.CONTINUED),
        (DEDENTED, Joined.CONTINUED),
        (DEEPER, Joined.CONTINUED),
        (FIRST_LINE_LOST, Joined.CONTINUED),
        ("return sum(values)", Joined.CONTINUED),
        ("\n\n    return sum(values)\n\n\n", Joined.CONTINUED),
        ("    # adds\n    return sum(values)\n\n\ndef other():\n    return 1\n", Joined.CONTINUED),
        ("    return poly(values, 1)", Joined.CONTINUED),
        (FUNCTION, Joined.AFTER_PREAMBLE),
        ("def total(values: List[int]) -> int:\n    return poly(values, 1)\n", Joined.AFTER_PREAMBLE),
        ("import math\n" + FUNCTION + "print(total([1]))\n", Joined.AFTER_PREAMBLE),
        ("total = lambda values: sum(values)", Joined.AFTER_PREAMBLE),
        ("if True:\n    def total(values):\n        return sum(values)\n", Joined.AFTER_PREAMBLE),
        ("  def total(values):\n    return sum(values)\n", Joined.AFTER_PREAMBLE),
        ("from __future__ import annotations\n" + FUNCTION, Joined.AFTER_PREAMBLE),
        ('"""Doc."""\nfrom __future__ import (\n    annotations,\n)\n' + FUNCTION, Joined.AFTER_PREAMBLE),
        (HEAD + BODY, Joined.ALONE),
        ("from typing import List\ndef poly(a, b): return 9\n" + FUNCTION, Joined.ALONE),
    ],
)
@pytest.mark.parametrize("wrap", ["{}", "```python\n{}\n```", "Here it is:\n\n~~~\n{}\n~~~\nDone."])
def test_right_answers_of_every_shape_work(answer: str, how: Joined, wrap: str) -> None:
    if wrap == "{}" and answer is FIRST_LINE_LOST:
        answer = answer.rstrip()  # as a reply that somebody trimmed
    got = code_answer(wrap.format(answer), public())
    assert (got.joined, got.source) == (how, "whole" if wrap == "{}" else "fence")
    assert run(got.text, "total([1, 2, 3])") == 6


@pytest.mark.parametrize("starter", ["def total(values):", "def total(values):\n", "def total(values):\n    "])
@pytest.mark.parametrize("answer", [BODY, DEDENTED, DEEPER, FIRST_LINE_LOST, FUNCTION])
def test_starter_code_goes_before_the_prompt(starter: str, answer: str) -> None:
    got = code_answer(answer, public(prompt="Add the values up.", starter_code=starter))
    assert run(got.text, "total([1, 2, 3])") == 6


@pytest.mark.parametrize("entry_point", ["Solution.total", "Solution", None])
@pytest.mark.parametrize("answer", [DEDENTED, "        return sum(values)\n", "return sum(values)"])
def test_a_method_can_be_continued(entry_point: str | None, answer: str) -> None:
    starter = "import math\n\nclass Solution:\n    def total(self, values):\n        "
    got = code_answer(answer, public(starter_code=starter, entry_point=entry_point))
    assert got.joined is Joined.CONTINUED
    assert run(got.text, "Solution().total([1, 2])") == 3


def test_tabs_stay_tabs() -> None:
    got = code_answer("for v in values:\n\treturn v", public(starter_code='def total(values):\n\t"""Doc."""\n'))
    assert got.joined is Joined.CONTINUED
    assert run(got.text, "total([7])") == 7


@pytest.mark.parametrize("answer", ["values.sort()", "    values.sort()\n", "values.sort()\n    values[:] = values"])
def test_a_body_needs_no_return(answer: str) -> None:
    got = code_answer(answer, public())
    assert got.joined is Joined.CONTINUED
    assert run(got.text, "(lambda v: (total(v), v))([3, 1])") == (None, [1, 3])


def test_imports_of_the_starter_are_kept_without_its_entry_point() -> None:
    answer = "def total(values):\n    return math.fsum(values)"
    got = code_answer(answer, public(starter_code="import math\n"))
    assert run(got.text, "total([1, 2])") == 3.0


def test_decorated_helpers_are_kept_whole() -> None:
    starter = "from functools import cache\n\n@cache\ndef one():\n    return 1\n\ndef total(values): ...\n"
    got = code_answer("def total(values):\n    return one() + sum(values)", public(starter_code=starter))
    assert run(got.text, "total([1, 2])") == 4


def test_what_the_answer_defines_wins_over_the_starter() -> None:
    starter = "LIMIT = 1\n\ndef total(values): ...\n"
    got = code_answer("LIMIT = 2\ndef total(values):\n    return LIMIT", public(starter_code=starter))
    assert got.joined is Joined.ALONE
    assert run(got.text, "total([])") == 2


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot do that.",
        "((((",
        "x\0y",
        "\ud800",
        "(" * 5000,
        "-" * 100_000 + "1",
        "x" + "+x" * 100_000,
        "1" * 10_000,
        "a." * 60_000 + "b",
        "def total(values):\n    return '\\d'" + " " * 300_000 + "x",
    ],
)
def test_what_neither_defines_nor_continues_stands_as_it_is(answer: str) -> None:
    got = code_answer(answer, public())
    assert (got.text, got.joined) == (answer, Joined.ALONE)


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "Write total(values)."},
        {"prompt": "Implement"},
        {"prompt": "def total(values) -> adds them up"},
        {"prompt": "def other():\n    pass"},
        {"entry_point": None},
        {"language": "rust", "starter_code": "fn total() {"},
        {"starter_code": "int total(int* values) {"},
        {"starter_code": "x = 1\n", "entry_point": None},
    ],
)
def test_without_code_to_start_with_the_answer_stands_as_it_is(fields: dict[str, Any]) -> None:
    got = code_answer(f"```\n{FUNCTION}```", public(**fields))
    assert (got.text, got.joined) == (FUNCTION, Joined.ALONE)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", FailureReason.NO_ANSWER),
        (" \n\t ", FailureReason.NO_ANSWER),
        ("Here:\n```\n\n```", FailureReason.NO_ANSWER),
        ("```\na\n```\n```\nb\n```", FailureReason.AMBIGUOUS_ANSWER),
        ("```\na\n```\n```\na\n```", FailureReason.AMBIGUOUS_ANSWER),
        ("```python\ndef total(", FailureReason.MALFORMED_ANSWER),
        ("```\na\n```\n```", FailureReason.MALFORMED_ANSWER),
    ],
)
def test_replies_without_one_answer(reply: str, reason: FailureReason) -> None:
    with pytest.raises(CandidateError) as code:
        code_answer(reply, public())
    with pytest.raises(CandidateError) as patch:
        patch_answer(reply)
    assert code.value.reason == patch.value.reason == reason


def test_a_docstring_with_a_fence_in_it_ends_no_block() -> None:
    function = 'def total(values):\n    """Adds.\n\n    ```\n    total([1])\n    ```\n    """\n    return sum(values)\n'
    for reply in (function, f"```python\n{function}```"):
        assert run(code_answer(reply, public()).text, "total([1, 2])") == 3


@pytest.mark.parametrize("reply", ["--- a/x\n+++ b/x\n", "--- a/x\n+++ b/x", "So:\n```diff\n--- a/x\n+++ b/x\n```"])
def test_a_patch_is_the_block_or_the_whole_reply(reply: str) -> None:
    assert patch_answer(reply)[0] == "--- a/x\n+++ b/x\n"


EXPRESSION = st.sampled_from(["sum(values)", "len(values)", "values[0]", "0", "[v for v in values]", "poly(values, 1)"])
STATEMENTS = st.recursive(
    st.builds("x = {}".format, EXPRESSION).map(lambda line: [line]),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a: ["if values:", *(f"    {line}" for line in a)], inner),
        st.builds(lambda a: ["for v in values:", *(f"    {line}" for line in a)], inner),
        st.builds(lambda a: ["def inner():", *(f"    {line}" for line in a), "    return x"], inner),
    ),
    max_leaves=6,
)


@given(STATEMENTS, EXPRESSION, st.integers(0, 12))
def test_a_body_means_the_same_at_every_indentation(lines: list[str], result: str, shift: int) -> None:
    body = [*lines, f"return {result}"]
    canonical = HEAD + "".join(f"    {line}\n" for line in body)
    answer = "".join(" " * shift + line + "\n" for line in body)
    got = code_answer(answer, public())
    assert ast.dump(ast.parse(got.text)) == ast.dump(ast.parse(canonical))


@given(st.text(alphabet="def total(vs):\n \treturn`~1+'\"#@", max_size=80), st.booleans())
def test_any_reply_ends_in_a_program_or_a_candidates_error(reply: str, with_starter: bool) -> None:
    try:
        got = code_answer(reply, public(starter_code="def total(vs):\n    " if with_starter else None))
    except CandidateError:
        return
    assert got.text.strip()
    if got.joined is not Joined.ALONE:
        ast.parse(got.text)
