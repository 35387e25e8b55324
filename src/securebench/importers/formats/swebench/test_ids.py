"""From the test ids of a SWE-bench row to what runs exactly these tests. Pure; what an id leaves open is not guessed.

The ids are what log parsers found in the output of each project's own runner, so they have the forms of those runners:

| Form                          | Meaning                                                                         |
|-------------------------------|---------------------------------------------------------------------------------|
| `tests/test_a.py::test_b[x]`  | a node of pytest                                                                |
| `test_b (pkg.tests.TestA)`    | unittest; with Python 3.11 and newer `test_b (pkg.tests.TestA.test_b)`          |
| `pkg.tests.TestA.test_b`      | the same                                                                        |
| `test_b`                      | a function of the one file that the test patch changes                          |

Django's tests have the second form and need Django's own runner, which sets up settings and a database: they become a
command. What is none of these (the first line of a docstring, an id that was cut at a blank) names no test."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from securebench.errors import PackError
from securebench.importers.base import CannotConvert
from securebench.verifiers.suites.ids import read_id

DJANGO = "django/django"
_DJANGO_RUNNER = ("tests/runtests.py", "--settings=test_sqlite", "--parallel=1", "--verbosity=0")
_PYTEST, _UNITTEST = "pytest", "unittest"
_FUNCTION = re.compile(r"test\w*", re.ASCII)
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Suite:
    """What runs the tests. `left_out` are ids of tests that passed before and after, which name no test: each with the
    reason."""

    source: str  # pytest, unittest or command
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def command(self, python: str) -> list[str]:
        """For the source `command`: every expected test, by the label its runner takes."""
        return [python, *_DJANGO_RUNNER, *self.fail_to_pass, *self.pass_to_pass]


def suite_of(repo: str, fail_to_pass: Sequence[str], pass_to_pass: Sequence[str], test_files: Sequence[str]) -> Suite:
    """`test_files` are the Python files that the test patch changes. Raises CannotConvert where a test that must begin
    to pass cannot be named, or the tests are of different runners."""
    if not fail_to_pass:
        raise CannotConvert("FAIL_TO_PASS is empty", field="FAIL_TO_PASS")
    found = [_read(text, test_files) for text in dict.fromkeys(fail_to_pass)]
    wanted = {one.id for one in found}
    others, left_out = [], []
    for text in dict.fromkeys(pass_to_pass):
        try:
            other = _read(text, test_files)
        except CannotConvert as error:
            left_out.append(str(error))
            continue
        if other.id not in wanted:
            others.append(other)
    sources = {one.source for one in (*found, *others)}
    if len(sources) > 1:
        raise CannotConvert("test ids are of different runners", f"{' and '.join(sorted(sources))}", "FAIL_TO_PASS")
    source = sources.pop()
    if repo == DJANGO and source == _UNITTEST:
        source = "command"
    return Suite(source, _ids(found), _ids(others), tuple(left_out))


@dataclass(frozen=True, slots=True)
class _Test:
    source: str
    id: str


def _ids(tests: Iterable[_Test]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(test.id for test in tests))


def _read(text: str, test_files: Sequence[str]) -> _Test:
    if "::" in text:
        return _node(text)
    if _FUNCTION.fullmatch(text):
        if len(test_files) != 1:
            detail = f"{text[:_SHOWN]!r}; the test patch changes {len(test_files)} Python files"
            raise CannotConvert("a test id names no file", detail, "FAIL_TO_PASS")
        return _Test(_PYTEST, f"{test_files[0]}::{text}")
    try:
        test = read_id(_UNITTEST, text, "")
    except PackError:
        raise _no_test(text) from None
    return _Test(_UNITTEST, f"{test.file.removesuffix('.py').replace('/', '.')}.{test.name}")


def _node(text: str) -> _Test:
    name, bracket, parameters = text.partition("[")
    if bracket and not parameters.endswith("]"):
        raise CannotConvert("a test id is cut off", repr(text[:_SHOWN]), "FAIL_TO_PASS")
    try:
        read_id(_PYTEST, text, "")
    except PackError:
        raise _no_test(text) from None
    if any(char.isspace() for char in name):
        raise _no_test(text)
    return _Test(_PYTEST, text)


def _no_test(text: str) -> CannotConvert:
    return CannotConvert("a test id names no test", repr(text[:_SHOWN]), "FAIL_TO_PASS")
