"""Assertions that compare with a literal, found in the syntax tree of a test, and the same ones with a wrong value.

Known are `assert expr == literal` (either way round, also `is True`, `is False` and a plain `pytest.approx`), the
`assertEqual` family, and comparisons with a parameter whose values stand as literals in `parametrize`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
_EQUALITIES = frozenset(
    {
        "assertEqual",
        "assertEquals",
        "assertListEqual",
        "assertTupleEqual",
        "assertDictEqual",
        "assertSetEqual",
        "assertMultiLineEqual",
        "assertSequenceEqual",
        "assertCountEqual",
        "assertAlmostEqual",
    }
)


@dataclass(frozen=True, slots=True)
class Literal:
    """One place in a test that holds a right value, and how to put another one there.

    `spoil` changes the given copy of the test; it finds the place by the path, so that it fits every copy."""

    value: Any
    spoil: Callable[[Function, Any], None]
    assertion: int  # the number of the assertion it belongs to
    place: tuple[int, ...]  # what it is in: the same for two assertions that share a parameter


def literals(test: Function) -> list[Literal]:
    """Every comparison with a literal in a test, in order, without those inside nested functions."""
    columns = _columns(test)
    found: list[Literal] = []
    for index, node in enumerate(_assertions(test)):
        for place, expression in _compared(node, columns):
            inner = _approximated(expression)
            if isinstance(inner, ast.Name) and inner.id in columns:
                found += _column_literals(columns[inner.id], index)
                continue
            try:
                value = ast.literal_eval(inner)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
            found.append(Literal(value, _in_assertion(index, place), index, (index, place)))
    return list({literal.place: literal for literal in found}.values())


def count_assertions(test: Function) -> int:
    """How many assertions a test makes, twinned or not."""
    return len(_assertions(test))


def _assertions(test: Function) -> list[ast.Assert | ast.Call]:
    return [node for node in _own_nodes(test) if isinstance(node, ast.Assert) or _is_assert_call(node)]


def _own_nodes(test: Function) -> Iterator[Any]:
    """Every node of the body in a fixed order, nested functions and classes left out: they may never run."""
    waiting: list[ast.AST] = list(reversed(test.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        yield node
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _is_assert_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
        and node.func.attr.startswith("assert")
    )


def _compared(node: ast.Assert | ast.Call, columns: Collection[str]) -> list[tuple[int, ast.expr]]:
    """The operands, with their place, of which one may be the literal; nothing where both or none may be."""
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Attribute) and node.func.attr in _EQUALITIES
        operands = node.args if known and len(node.args) == 2 and not _other_tolerance(node) else []
    else:
        operands = _equality(node.test)
    places = [(place, operand) for place, operand in enumerate(operands) if _is_literal(operand, columns)]
    return places if len(places) == 1 else []


def _other_tolerance(call: ast.Call) -> bool:
    return any(keyword.arg != "msg" for keyword in call.keywords)


def _equality(test: ast.expr) -> list[ast.expr]:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return []
    operands = [test.left, test.comparators[0]]
    if isinstance(test.ops[0], ast.Eq):
        return operands
    if isinstance(test.ops[0], ast.Is) and any(_is_bool(operand) for operand in operands):
        return operands
    return []


def _is_bool(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _is_literal(node: ast.expr, columns: Collection[str]) -> bool:
    """A literal itself, or the name of a parameter whose values are."""
    inner = _approximated(node)
    if isinstance(inner, ast.Name):
        return inner.id in columns
    try:
        ast.literal_eval(inner)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _approximated(node: ast.expr) -> ast.expr:
    """What stands in a plain `approx(…)`; one with a tolerance of its own could take a wrong value for right."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "approx":
            return node.args[0]
    return node


def _in_assertion(index: int, place: int) -> Callable[[Function, Any], None]:
    def spoil(test: Function, value: Any) -> None:
        node = _assertions(test)[index]
        operands = node.args if isinstance(node, ast.Call) else None
        new = ast.parse(repr(value), mode="eval").body
        if operands is not None:
            operands[place] = _put(operands[place], new)
            return
        assert isinstance(node, ast.Assert)  # noqa: S101 — tells the type checker what the branch means
        compare = node.test
        assert isinstance(compare, ast.Compare)  # noqa: S101
        if place == 0:
            compare.left = _put(compare.left, new)
        else:
            compare.comparators[0] = _put(compare.comparators[0], new)

    return spoil


def _put(old: ast.expr, new: ast.expr) -> ast.expr:
    if _approximated(old) is old:
        return new
    assert isinstance(old, ast.Call)  # noqa: S101
    old.args[0] = new
    return old


@dataclass(frozen=True, slots=True)
class _Column:
    """One parameter of a `parametrize` whose values are literals: which decorator, which place in each row."""

    decorator: int
    place: int | None  # None where rows are bare values
    values: tuple[Any, ...]


def _columns(test: Function) -> dict[str, _Column]:
    found: dict[str, _Column] = {}
    for number, decorator in enumerate(test.decorator_list):
        if not _is_parametrize(decorator):
            continue
        assert isinstance(decorator, ast.Call)  # noqa: S101
        names = _names(decorator.args[0])
        rows = decorator.args[1]
        if not names or not isinstance(rows, ast.List | ast.Tuple) or not rows.elts:
            continue
        for place, name in enumerate(names):
            cells = [_cell(row, place if len(names) > 1 else None) for row in rows.elts]
            try:
                values = tuple(ast.literal_eval(cell) for cell in cells if cell is not None)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
            if len(values) == len(cells):
                found[name] = _Column(number, place if len(names) > 1 else None, values)
    return found


def _is_parametrize(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "parametrize"
        and len(node.args) >= 2
    )


def _names(node: ast.expr) -> list[str]:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return []
    names = value.split(",") if isinstance(value, str) else list(value)
    return [str(name).strip() for name in names if str(name).strip()]


def _cell(row: ast.expr, place: int | None) -> ast.expr | None:
    if place is None:
        return row
    return row.elts[place] if isinstance(row, ast.Tuple | ast.List) and len(row.elts) > place else None


def _column_literals(column: _Column, assertion: int) -> list[Literal]:
    where = -1 - column.decorator, column.place or 0
    return [
        Literal(value, _in_column(column, row), assertion, (*where, row)) for row, value in enumerate(column.values)
    ]


def _in_column(column: _Column, row: int) -> Callable[[Function, Any], None]:
    """In that row; the others stay, for a variant with fewer rows than the rest would say what it is."""

    def spoil(test: Function, value: Any) -> None:
        decorator = test.decorator_list[column.decorator]
        assert isinstance(decorator, ast.Call)  # noqa: S101
        rows = decorator.args[1]
        assert isinstance(rows, ast.List | ast.Tuple)  # noqa: S101
        kept, new = rows.elts[row], ast.parse(repr(value), mode="eval").body
        if column.place is not None:
            assert isinstance(kept, ast.List | ast.Tuple)  # noqa: S101
            kept.elts[column.place] = new
        else:
            rows.elts[row] = new

    return spoil
