"""Twins: exactly one variant of a test holds the right value, and nothing in the source says which."""

from __future__ import annotations

import ast
import re
from random import Random
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.verifiers.suites.twins import MAX_ALONE, TwinnedModule, twin_module
from securebench.verifiers.suites.wrong_values import wrong_value


def twin(source: str, *wanted: str, seed: int = 1) -> TwinnedModule:
    return twin_module(dedent(source), frozenset(wanted), Random(seed))


def outcomes(module: TwinnedModule, **names: Any) -> dict[str, bool]:
    """Which functions of the module hold, run as plain functions."""
    space: dict[str, Any] = dict(names)
    exec(compile(module.source, "twinned", "exec"), space)
    held = {}
    for name, function in list(space.items()):
        if name.startswith("test") and callable(function):
            try:
                function()
            except AssertionError:
                held[name] = False
            else:
                held[name] = True
    return held


COMPARISONS = [
    ("assert f(2) == 4", {"f": lambda x: x * x}),
    ("assert 4 == f(2)", {"f": lambda x: x * x}),
    ("result = f(2)\n    assert result == 4", {"f": lambda x: x * x}),
    ("assert f(2) is True", {"f": lambda x: True}),
    ("assert f() == 'abc'", {"f": lambda: "abc"}),
    ("assert f() == ''", {"f": str}),
    ("assert f() == b'ab'", {"f": lambda: b"ab"}),
    ("assert f() == []", {"f": list}),
    ("assert f() == [1, (2, 3), {'a': [4]}]", {"f": lambda: [1, (2, 3), {"a": [4]}]}),
    ("assert f() == {1, 2}", {"f": lambda: {1, 2}}),
    ("assert f() == {}", {"f": dict}),
    ("assert f() == -1.5", {"f": lambda: -1.5}),
    ("for _ in range(2):\n        assert f() == 3", {"f": lambda: 3}),
]


@pytest.mark.parametrize(("body", "names"), COMPARISONS)
def test_truth_holds_and_every_decoy_fails_on_right_code(body: str, names: dict[str, Any]) -> None:
    module = twin(f"def test_it():\n    {body}\n", "test_it")
    [twins] = module.twins
    held = outcomes(module, **names)
    assert held == {twins.truth: True} | dict.fromkeys(twins.decoys, False)
    assert len(twins.decoys) == 1


def test_wrong_code_fails_the_truth() -> None:
    module = twin("def test_it():\n    assert f(2) == 4\n", "test_it")
    assert not outcomes(module, f=lambda x: 0)[module.twins[0].truth]


def test_code_that_makes_everything_pass_passes_the_decoys_too() -> None:
    class Agreeable:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    module = twin("def test_it():\n    assert f(2) == 4\n", "test_it")
    assert set(outcomes(module, f=lambda x: Agreeable()).values()) == {True}


@pytest.mark.parametrize(
    "body",
    [
        "assert f()",
        "assert f() is None",
        "assert f() != 3",
        "assert f() == g()",
        "assert 1 == 1",
        "assert f() == pytest.approx(3.0, abs=10)",
        "assert f() in [1, 2]",
        "def inner():\n        assert f() == 3",
        "self.assertAlmostEqual(f(), 3.0, delta=100)",
        "self.assertTrue(f())",
    ],
)
def test_other_assertions_stay_as_they_are(body: str) -> None:
    source = f"def test_it():\n    {body}\n"
    assert twin(source, "test_it") == TwinnedModule(source, (), module_assertions(body), 0)


def module_assertions(body: str) -> int:
    return 0 if body.startswith("def inner") else 1


def test_each_assertion_has_its_decoy() -> None:
    module = twin("def test_it():\n    assert f(1) == 1\n    assert f(2) == 2\n    assert f(3)\n", "test_it")
    assert (module.assertions, module.twinned, len(module.twins[0].decoys)) == (3, 2, 3)


def test_number_of_decoys_is_bounded() -> None:
    body = "\n".join(f"    assert f({n}) == {n}" for n in range(100))
    assert len(twin(f"def test_it():\n{body}\n", "test_it").twins[0].decoys) == 2 * MAX_ALONE + 1


def test_unittest_methods_are_twinned_in_their_class() -> None:
    module = twin(
        """
        import unittest
        class TestA(unittest.TestCase):
            def setUp(self): self.x = 1
            def test_a(self):
                self.assertEqual(f(self.x), 5)
                self.assertEqual("ab", g(), msg="why")
        """,
        "TestA.test_a",
    )
    [twins] = module.twins
    assert twins.test == "TestA.test_a"
    assert twins.truth.startswith("TestA.test_a_")
    assert len(twins.decoys) == 3
    assert "def setUp" in module.source


def test_column_of_a_parametrised_table_is_twinned_row_by_row() -> None:
    module = twin(
        """
        import pytest
        @pytest.mark.parametrize("a, b", [(1, 1), (2, 4), (3, 9)], ids=["x", "y", "z"])
        def test_square(a, b):
            assert f(a) == b
        """,
        "test_square",
    )
    [twins] = module.twins
    functions = {n.name: n for n in ast.walk(ast.parse(module.source)) if isinstance(n, ast.FunctionDef)}
    rows = {
        name: ast.literal_eval(f.decorator_list[0].args[1])  # type: ignore[attr-defined]
        for name, f in functions.items()
    }
    assert rows[twins.truth] == [(1, 1), (2, 4), (3, 9)]
    for name in twins.decoys:
        assert [a for a, _ in rows[name]] == [1, 2, 3]  # as many rows as the truth has
        assert any(b != a * a for a, b in rows[name])


def values(function: ast.FunctionDef) -> list[str]:
    return [ast.unparse(node.comparators[0]) for node in ast.walk(function) if isinstance(node, ast.Compare)]


def by_majority(source: str) -> set[str]:
    """The forger's view: of all variants, those that hold only values which most of them hold."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    columns = list(zip(*map(values, functions), strict=True))
    common = [{value for value in column if 2 * column.count(value) > len(column)} for column in columns]
    return {f.name for f in functions if all(v in c for v, c in zip(values(f), common, strict=True))}


FOUR = (
    "def test_it():\n    assert f(1) == 10\n    assert f(2) == 'two'\n    assert f(3) == [3]\n    assert f(4) == 4.5\n"
)


def test_majority_of_values_does_not_tell_the_truth() -> None:
    for seed in range(20):
        assert by_majority(twin(FOUR, "test_it", seed=seed).source) == set()


def test_majority_would_tell_the_truth_among_variants_with_one_wrong_value_each() -> None:
    wrong = [FOUR.replace(old, new) for old, new in (("10", "11"), ("two", "twq"), ("[3]", "[4]"), ("4.5", "6.5"))]
    naive = "".join(text.replace("test_it", f"test_{number}") for number, text in enumerate([FOUR, *wrong]))
    assert by_majority(naive) == {"test_0"}


def test_each_value_is_looked_at_alone() -> None:
    """Code that answers honestly but for one call, where it agrees with everything, passes a decoy."""

    class Agreeable:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    right = {1: 10, 2: "two", 3: [3], 4: 4.5}
    module = twin(FOUR, "test_it")
    for forged in right:
        held = outcomes(module, f=lambda x, forged=forged: Agreeable() if x == forged else right[x])
        assert any(held[decoy] for decoy in module.twins[0].decoys)


def test_right_value_has_the_same_rival_wherever_it_stands() -> None:
    module = twin("def test_a():\n    assert f() == 100\ndef test_b():\n    assert g() == 100\n", "test_a", "test_b")
    assert len(set(re.findall(r"== (\d+)", module.source))) == 2


def test_words_that_tell_the_right_value_are_taken_out() -> None:
    module = twin("def test_a():\n    'It is 100.'\n    assert f() == 100, 'not 100'\n", "test_a")
    assert module.source.count("100") == 1


def test_only_wanted_tests_are_rewritten() -> None:
    module = twin("def test_a():\n    assert f() == 1\ndef test_b():\n    assert f() == 1\n", "test_a")
    assert [twins.test for twins in module.twins] == ["test_a"]
    assert re.search(r"def test_b\(\)", module.source)
    assert not re.search(r"def test_a\(\)", module.source)


def test_same_seed_same_twins_other_seed_others() -> None:
    source = "def test_a():\n    assert f() == 1\n"
    assert twin(source, "test_a") == twin(source, "test_a")
    assert twin(source, "test_a", seed=2) != twin(source, "test_a")


def test_place_of_the_truth_says_nothing() -> None:
    """Over many seeds the truth stands first about as often as its decoy does."""
    first = 0
    for seed in range(200):
        module = twin("def test_a():\n    assert f() == 1\n", "test_a", seed=seed)
        names = re.findall(r"def (test_a_\w+)", module.source)
        first += names[0] == module.twins[0].truth
    assert 60 < first < 140


@pytest.mark.parametrize("source", ["def broken(:\n", "\0", "x = " + "(" * 5000 + ")" * 5000])
def test_source_that_does_not_parse_stays_as_it_is(source: str) -> None:
    assert twin_module(source, frozenset({"test_a"}), Random(1)).source == source


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES, st.integers(0, 1000))
def test_wrong_value_is_of_the_same_type_and_differs(value: Any, seed: int) -> None:
    try:
        wrong = wrong_value(value, Random(seed))
    except ValueError:
        return
    assert type(wrong) is type(value)
    assert wrong != value
    assert ast.literal_eval(repr(wrong)) == wrong
