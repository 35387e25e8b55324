"""Which names of a test file come from where.

A name that the tests define, that the public prompt defines with a body, or that is built in is never taken from the
candidate, with one exception: the entry point that the row itself names."""

from __future__ import annotations

import ast
import builtins
import importlib
import symtable

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any

PROMPT = "prompt"  # the module of what the prompt defines


def free_names(code: str) -> set[str]:
    """The names that test code uses and does not define anywhere at its top level."""
    top = symtable.symtable(code, "tests", "exec")
    defined = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    used: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if table is not top and symbol.is_declared_global() and symbol.is_assigned():
                defined.add(name)
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                used.add(name)
    return used - defined


def modules(tree: ast.AST, free: set[str]) -> dict[str, Any]:
    """Modules that test code uses without importing them, relying on the candidate's import: imported here.

    `math.isclose(f(x), 3.2)` would otherwise be decided by whatever the candidate calls `math`."""
    names = {name for name in free if not hasattr(builtins, name)}
    found: dict[str, Any] = {}
    for node in ast.walk(tree) if names else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            name = node.value.id
            try:
                found[name] = importlib.import_module(_ALIASES.get(name, name))
            except ImportError:
                continue
    return found


_ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot"}


def wanted_names(free: set[str], helpers: dict[str, Any], entry: str | None) -> set[str]:
    """Which of the tests' free names may be taken from the candidate."""
    names = {name for name in free if name not in helpers and not hasattr(builtins, name)}
    if entry is not None and entry in free:
        names.add(entry)
    return names


def prompt_helpers(texts: list[str], entry: str | None) -> dict[str, Any]:
    """What the public text defines completely: functions and classes with bodies, and imports."""
    found: dict[str, Any] = {"__name__": PROMPT}
    for text in texts:
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # prose
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                if node.name == entry or _unfinished(node):
                    continue
            elif not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            try:
                exec(compile(ast.Module([node], []), "prompt", "exec", dont_inherit=True), found)
            except Exception:
                continue
    return {name: value for name, value in found.items() if not name.startswith("__")}


def _unfinished(node: ast.AST) -> bool:
    """Whether some function in it is only a stub to be filled in."""
    functions = [inner for inner in ast.walk(node) if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return not functions or any(all(_says_nothing(line) for line in function.body) for function in functions)


def _says_nothing(line: ast.stmt) -> bool:
    if isinstance(line, ast.Raise):
        return "NotImplemented" in ast.dump(line)
    return isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
