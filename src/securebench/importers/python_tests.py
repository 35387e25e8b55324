"""Tests of other people's in Python, made fit for the test room, as a syntax tree; nothing is run.

The room has Python and nothing else, and it wants tests that it can count: a function `check`, tests, or asserts."""

from __future__ import annotations

import ast
from importlib.resources import files
from keyword import iskeyword

from securebench.importers.base import CannotConvert
from securebench.importers.python_source import asserts_something, parse

COMPARING = frozenset({"allclose", "isclose", "ndarray", "float32", "float64", "testing"})
"""What tests use NumPy for when all they do is to compare numbers."""
ASSERT_NOTHING = "its tests assert nothing"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def inline_tests(code: str, entry_point: str, image: str = "") -> str:
    """The tests as they shall stand in a row; as they are, wherever that will do. Raises CannotConvert.

    In an `image` tests find what they import, so nothing of that is looked at."""
    module = parse(code)
    if module is None:
        raise CannotConvert("its tests are no Python, or too long to be looked at")
    if not asserts_something(module):
        raise CannotConvert(ASSERT_NOTHING)
    changed = not image and _without_numpy(module)
    if not _countable(module):
        _as_check(module, entry_point)
        changed = True
    return ast.unparse(ast.fix_missing_locations(module)) + "\n" if changed else code


def _without_numpy(module: ast.Module) -> bool:
    """Puts a comparison of ours into the place of NumPy. Raises CannotConvert where more than that is wanted of it."""
    imports = [node for node in ast.walk(module) if isinstance(node, _IMPORTS) and _is_numpy(node)]
    if not imports:
        return False
    first = imports[0]
    if len(imports) > 1 or not isinstance(first, ast.Import) or len(first.names) != 1 or first not in module.body:
        raise CannotConvert("its tests need NumPy")
    name = first.names[0].asname or "numpy"
    used = {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute) and _is_name(node.value, name)}
    bare = sum(_is_name(node, name) for node in ast.walk(module))
    reached = sum(isinstance(node, ast.Attribute) and _is_name(node.value, name) for node in ast.walk(module))
    others = (used - COMPARING) | (_of_testing(module, name) - {"assert_allclose"})
    if others or bare != reached:
        raise CannotConvert("its tests need NumPy", ", ".join(sorted(others))[:200])
    comparison = files("securebench.importers").joinpath("comparing.py.txt").read_text("utf-8")
    module.body[module.body.index(first)] = ast.parse(comparison.replace("_NUMPY_", name)).body[0]
    return True


def _of_testing(module: ast.Module, name: str) -> set[str]:
    """What tests want of the library's own module of assertions."""
    return {
        node.attr
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "testing"
        and _is_name(node.value.value, name)
    }


def _is_numpy(node: ast.Import | ast.ImportFrom) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return any(name.partition(".")[0] == "numpy" for name in names)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _countable(module: ast.Module) -> bool:
    """Whether the room finds something to run."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            if any(isinstance(item, _FUNCTIONS) and item.name.startswith("test") for item in node.body):
                return True
        elif isinstance(node, _FUNCTIONS):
            if node.name == "check" or node.name.startswith("test"):
                return True
        elif any(isinstance(inner, ast.Assert) for inner in ast.walk(node)):
            return True
    return False


def _as_check(module: ast.Module, entry_point: str) -> None:
    """Statements that call functions with asserts in them, as one function `check`. Raises CannotConvert."""
    if not entry_point.isidentifier() or iskeyword(entry_point):
        raise CannotConvert("its entry_point is no name of a function")
    kept = [node for node in module.body if isinstance(node, _DEFINITIONS + _IMPORTS)]
    statements: list[ast.stmt] = [node for node in module.body if node not in kept]
    if not statements:
        raise CannotConvert(ASSERT_NOTHING)
    bound: list[ast.stmt] = list(ast.parse(f"{entry_point} = candidate").body)
    check = ast.parse("def check(candidate):\n    pass").body[0]
    assert isinstance(check, ast.FunctionDef)  # noqa: S101 — written above
    check.body = bound + statements
    module.body = [*kept, check]
