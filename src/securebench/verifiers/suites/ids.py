"""Test ids of a row, taken apart: `tests/test_a.py::TestB::test_c[x]`, or `tests.test_a.TestB.test_c` for unittest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from securebench._paths import relative_path
from securebench.errors import PackError


@dataclass(frozen=True, slots=True, order=True)
class TestId:
    """One expected test: the file, the function within it, and its parameters with brackets or nothing."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    file: str
    name: str
    parameters: str = ""

    def __str__(self) -> str:
        return f"{self.file}::{self.name.replace('.', '::')}{self.parameters}"

    def renamed(self, name: str) -> TestId:
        return TestId(self.file, name, self.parameters)


def read_id(kind: str, text: str, task_id: str) -> TestId:
    """Raises PackError where the id is not of the runner's form."""
    found = _pytest_id(text) if kind == "pytest" else _unittest_id(text)
    if found is None or not _is_path(found.file):
        form = "path/test_x.py::test_name" if kind == "pytest" else "package.test_x.TestClass.test_name"
        raise PackError(f"task {task_id}: test id {text[:200]!r} is not of the form {form}")
    return found


def _is_path(text: str) -> bool:
    """Whether it is a file beneath the repository, and one that a runner does not take for an option."""
    if text.startswith(("-", "@")):
        return False
    try:
        relative_path(text)
    except ValueError:
        return False
    return True


def _pytest_id(text: str) -> TestId | None:
    file, mark, rest = text.partition("::")
    name, bracket, parameters = rest.partition("[")
    if not mark or not name or not file.endswith(".py"):
        return None
    return TestId(file, name.replace("::", "."), bracket + parameters)


_UNITTEST = re.compile(r"(?:(?P<method>\w+) \((?P<owner>[\w.]+)\)|(?P<whole>[\w.]+))", re.ASCII)


def _unittest_id(text: str) -> TestId | None:
    """Dotted, or as unittest prints it: `test_name (package.test_x.TestClass)`."""
    found = _UNITTEST.fullmatch(text)
    if found is None:
        return None
    dotted = found["whole"]
    if dotted is None:
        owner = found["owner"]
        dotted = owner if owner.endswith(f".{found['method']}") else f"{owner}.{found['method']}"
    parts = dotted.split(".")
    if len(parts) < 3 or not all(parts):
        return None
    return TestId("/".join(parts[:-2]) + ".py", ".".join(parts[-2:]))
