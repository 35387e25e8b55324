"""pytest for tests that import it: ours, shown to the test room read-only. The worker never sees it."""

from __future__ import annotations

import ast
import warnings
from importlib.util import find_spec
from pathlib import Path

from securebench.errors import ConfigError, PackError
from securebench.sandboxes.base import Bind

INSIDE = "/securebench-libraries"
_NEEDED = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
_WHERE_OLD = ("exceptiongroup", "tomli", "typing_extensions")  # what pytest needs besides on older Pythons


def needs_pytest(code: str) -> bool:
    """Whether only pytest can run this: it imports pytest, has tests that take fixtures, or classes without a base.

    Raises PackError where the code is no Python."""
    if not any(word in code for word in ("pytest", "class", "def test")):
        return False  # most tests, which then need not be parsed here
    try:
        tree = _parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PackError(f"the tests are no Python: {type(error).__name__}") from None
    return any(_needs(node) for node in ast.walk(tree)) or any(
        _is_test(node) and _parameters(node) for node in tree.body
    )


def _parsed(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the pack's style; nobody here can act on them
        return ast.parse(code)


def _needs(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == "pytest" for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] == "pytest"
    if isinstance(node, ast.ClassDef):
        plain = all(isinstance(base, ast.Name) and base.id == "object" for base in node.bases)
        return node.name.startswith("Test") and plain and any(_is_test(item) for item in node.body)
    return False


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test")


def _parameters(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and len(node.args.args) > len(node.args.defaults)


def pytest_mounts() -> tuple[Bind, ...]:
    """The packages pytest consists of. Raises ConfigError, naming the extra, where it is not installed."""
    mounts = []
    for name in (*_NEEDED, *_WHERE_OLD):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            if name in _NEEDED:
                raise ConfigError("these tests need pytest; install it: pip install 'securebench[pytest]'")
            continue
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        mounts.append(Bind(source, f"{INSIDE}/{source.name}"))
        if name == "pluggy":  # it is asked for its version, which only its metadata knows
            mounts += [Bind(info, f"{INSIDE}/{info.name}") for info in source.parent.glob("pluggy-*.dist-info")]
    return tuple(mounts)
