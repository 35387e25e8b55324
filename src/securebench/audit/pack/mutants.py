"""Mutants of a reference: one thing broken at a time, the rest byte for byte as it was. Pure.

Whether a mutant that passes is wrong is for the author to say: some changes change nothing."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

LARGEST = 512 * 1024
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_INSTEAD: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_T = TypeVar("_T")
_Change = tuple[str, ast.expr | ast.stmt, str]
"""Of which kind, what is replaced, and by what."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """`what` was done in `line`; `source` is all of it with the change."""

    what: str
    line: int
    source: str
    diff: str

    @property
    def id(self) -> str:
        """What it is called in `eval.equivalent_mutants`."""
        return hashlib.sha256(self.diff.encode()).hexdigest()[:12]


def python_mutants(source: str, most: int, seed: int, lines: Iterable[int] | None = None) -> list[Mutant]:
    """At most so many mutants, as different in kind as can be; of these lines only, where any are given. None of a text
    that is no Python."""
    allowed = None if lines is None else frozenset(lines)
    kinds: dict[str, list[_Change]] = {}
    try:
        for change in _changes(_parsed(source)):
            node = change[1]
            if allowed is None or not allowed.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                kinds.setdefault(change[0], []).append(change)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    text, known = _Text(source), {source}

    def made(change: _Change) -> Mutant | None:
        kind, node, replacement = change
        changed = text.with_instead(node, replacement)
        if changed in known or not _is_python(changed):
            return None
        known.add(changed)
        return Mutant(f"{kind} in line {node.lineno}", node.lineno, changed, diff(source, changed))

    return _chosen(list(kinds.values()), made, most, seed)


def text_mutants(text: str, most: int, seed: int) -> list[Mutant]:
    """Mutants of a file that is no program: a number off by one, a line gone, lines in another order, cut short."""
    lines = text.splitlines(keepends=True)
    made: list[tuple[str, str]] = []
    numbers = list(_NUMBER.finditer(text))[:100]
    for match in numbers:
        changed = text[: match.start()] + str(int(match[0]) + 1) + text[match.end() :]
        made.append(("a number one larger", changed))
    made.append(("only the first line left", lines[0] if lines else ""))
    made.append(("the last line gone", "".join(lines[:-1])))
    made.append(("lines in reverse order", "".join(reversed(lines))))
    made.append(("cut in half", text[: len(text) // 2]))
    kinds: dict[str, list[tuple[str, str]]] = {}
    for kind, changed in made:
        kinds.setdefault(kind, []).append((kind, changed))
    known = {text.strip()}

    def mutant(one: tuple[str, str]) -> Mutant | None:
        kind, changed = one
        if changed.strip() in known:
            return None
        known.add(changed.strip())
        return Mutant(kind, 1, changed, diff(text, changed))

    return _chosen(list(kinds.values()), mutant, most, seed)


def diff(before: str, after: str) -> str:
    """What was changed, without context beyond a line."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++")))[:2000]


def _chosen(kinds: list[list[_T]], made: Callable[[_T], Mutant | None], most: int, seed: int) -> list[Mutant]:
    """One of each kind in turn, until there are enough; only those that are chosen are made."""
    random = Random(seed)  # noqa: S311 — a choice that can be repeated, not a secret
    for some in kinds:
        random.shuffle(some)
    chosen: list[Mutant] = []
    while len(chosen) < most and any(kinds):
        for some in kinds:
            while some and len(chosen) < most:
                mutant = made(some.pop())
                if mutant is not None:
                    chosen.append(mutant)
                    break
    return sorted(chosen, key=lambda mutant: (mutant.line, mutant.what))


def _parsed(source: str) -> ast.Module:
    if len(source) > LARGEST:
        raise ValueError("too large to be taken apart")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the author's style
        return ast.parse(source)


def _is_python(source: str) -> bool:
    try:
        _parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class _Text:
    """A source as bytes, in which the positions of a syntax tree count."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def with_instead(self, node: ast.expr | ast.stmt, replacement: str) -> str:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[end_line - 1] + end_column
        return (self._data[:start] + replacement.encode() + self._data[end:]).decode("utf-8", "replace")


def _changes(tree: ast.Module) -> Iterator[_Change]:
    for node, in_loop in _walk(tree, False):
        if isinstance(node, ast.stmt):
            yield from _statement(node, in_loop)
        elif isinstance(node, ast.expr):
            yield from _expression(node)


def _walk(node: ast.AST, in_loop: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Everything but what has no position of its own (parts of f-strings), annotations and docstrings; and whether it
    stands in a `while`, where leaving out a statement mostly means to wait for ever."""
    yield node, in_loop
    if isinstance(node, ast.JoinedStr | ast.Raise):  # what an exception says is seldom tested, and rightly so
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        inside = in_loop or (isinstance(node, ast.While) and name in ("body", "test"))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_docstring(child):
                yield from _walk(child, inside)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _statement(node: ast.stmt, in_loop: bool) -> Iterator[_Change]:
    match node:
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield "None returned", node, "return None"
        case ast.Assign() | ast.AugAssign() | ast.Expr() if not in_loop:
            yield "a statement left out", node, "pass"
        case ast.Raise():
            yield "an exception not raised", node, "pass"
        case ast.If(test=test) if not _is_negated_elsewhere(test):
            yield "a condition negated", test, f"(not ({ast.unparse(test)}))"
        case ast.Break() | ast.Continue() if not in_loop:
            yield "a jump left out", node, "pass"


def _expression(node: ast.expr) -> Iterator[_Change]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _OPPOSITE:
            changed = ast.Compare(left, [_OPPOSITE[type(operator)]()], [right])
            yield "a comparison changed", node, f"({ast.unparse(changed)})"
        case ast.BoolOp(op=operation, values=values):
            other = ast.Or() if isinstance(operation, ast.And) else ast.And()
            yield "and/or exchanged", node, f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _INSTEAD and not _is_text(left):
            changed_sum = ast.BinOp(left, _INSTEAD[type(operation)](), right)
            yield "an operator changed", node, f"({ast.unparse(changed_sum)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "a negation left out", node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool() as value):
            yield "true and false exchanged", node, str(not value)
        case ast.Constant(value=int() | float() as number):
            yield "a constant one larger", node, repr(number + 1)
        case ast.Constant(value=str() as text):
            yield "a text changed", node, repr(f"{text}!")


def _is_negated_elsewhere(test: ast.expr) -> bool:
    """Whether another change of the expression itself comes to the same."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not)
    opposites = ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is | ast.IsNot
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], opposites)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
