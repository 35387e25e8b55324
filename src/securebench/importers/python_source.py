"""Python of a source, looked at as a syntax tree; nothing is run."""

from __future__ import annotations

import ast
import warnings

MAX_SOURCE = 1024 * 1024


def parse(text: str) -> ast.Module | None:
    """The module; None for what is no Python, or too long to be looked at."""
    if len(text) > MAX_SOURCE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in other people's patterns
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def defined(module: ast.Module) -> set[str]:
    """The functions and classes that a module defines, at any depth."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(module) if isinstance(node, kinds)}


def first_call(module: ast.Module, names: set[str]) -> str | None:
    """The first of the names that a module calls, in the order in which it is written."""
    calls = [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call, ast.Name) and call.id in names]
    return min(named, key=lambda call: (call.lineno, call.col_offset)).id if named else None


def asserts_something(module: ast.Module) -> bool:
    """Whether there is anything in a module that could fail a candidate on purpose."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called.startswith(("assert", "fail")):
                return True
    return False


def signature(module: ast.Module, name: str) -> str:
    """`def name(…):` of a function of the module; `class name:` of a class; nothing where there is neither."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            return f"def {name}({ast.unparse(node.args)}){returns}:"
        if isinstance(node, ast.ClassDef) and node.name == name:
            return f"class {name}:"
    return ""
