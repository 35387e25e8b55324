"""Break the code under test on purpose: a suite that still passes does not test it, or was tampered with.

What the gold patch changed is what the fail-to-pass tests are about. In the candidate's own version of those files
every function the gold patch touched is made to raise; where that is not possible (other languages, code outside
functions, a function that is not there), the file is put back as it was before the fix."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sabotaged(before: str | None, gold: str | None, candidate: str | None) -> str | None:
    """The candidate's version of one Python file with the fixed functions broken, or None where only putting the
    file back breaks it. `before` and `gold` are the file without and with the gold patch; None: not there."""
    if gold is None or candidate is None:
        return None
    names = changed_functions(before or "", gold)
    return gutted(candidate, names) if names else None


def changed_functions(before: str, after: str) -> frozenset[str] | None:
    """Qualified names of the functions that differ; None where something outside functions differs, or one side
    does not parse."""
    try:
        old, new = _Outline(before), _Outline(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if before and old.rest != new.rest:
        return None
    return frozenset(name for name, body in new.functions.items() if old.functions.get(name) != body)


def gutted(source: str, names: frozenset[str]) -> str | None:
    """The module with every named function raising at once; None where one of them is not there."""
    left = set(names)
    try:
        module = _parsed(source)
        for name, function in _functions(module.body, ""):
            if name in names:
                function.body = ast.parse("raise RuntimeError").body
                left.discard(name)
        return None if left else ast.unparse(ast.fix_missing_locations(module))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the candidate's style; nobody here can act on them
        return ast.parse(source)


class _Outline:
    """A module taken apart: its functions by qualified name, and everything else with their bodies blanked."""

    def __init__(self, source: str) -> None:
        module = _parsed(source)
        self.functions: dict[str, str] = {}
        for name, function in _functions(module.body, ""):
            self.functions[name] = ast.dump(function)
        self.rest = [ast.dump(node) for node in _without_functions(module).body]


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    """Functions and methods at any depth of classes; what is nested in a function belongs to it."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")


def _without_functions(module: ast.Module) -> ast.Module:
    class Blank(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            """Leave it out."""

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
            """Leave it out."""

        def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
            self.generic_visit(node)
            node.body = node.body or [ast.Pass()]
            return node

    blanked = Blank().visit(module)
    assert isinstance(blanked, ast.Module)  # noqa: S101 — the transformer keeps the root
    return blanked
