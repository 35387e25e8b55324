"""Tests that need pytest run under the real one, here, where no candidate code is."""

from __future__ import annotations

import ast
import os
import sys
import types

from securebench.verifiers.rooms.inside.record import PackBroken, Recorder
from securebench.verifiers.rooms.inside.remote import StaleRemote
from securebench.verifiers.rooms.inside.suite import TESTS, Suite, require_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any

_NAMES = "names_of_the_candidate"
_DIRECTORY = "/tmp/tests"
_NOTHING_COLLECTED = 5  # pytest's exit code


class Plugin:
    """Deals the tests out and takes down what came of each."""

    def __init__(self, suite: Suite, recorder: Recorder) -> None:
        self.suite, self.recorder = suite, recorder
        self.indexes: dict[str, int] = {}
        self.failed: dict[str, str] = {}
        self.passed: set[str] = set()
        self.errors: list[str] = []
        self.missing: Any = None

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        self.indexes = {item.nodeid: index for index, item in enumerate(items)}
        if len(self.indexes) != len(items):
            self.errors.append("two tests have the same name")
        self.suite.random.shuffle(items)
        self.recorder.plan(len(items))

    def pytest_collectreport(self, report: Any) -> None:
        if not report.passed:
            self.errors.append("collection")

    def pytest_exception_interact(self, call: Any) -> None:
        error = call.excinfo.value
        while error is not None and not self.indexes:  # while collecting
            try:
                require_module(error)
            except PackBroken as broken:
                self.missing = broken
            error = error.__cause__

    def pytest_runtest_protocol(self, item: Any) -> None:
        try:
            self.recorder.turn()
        except StaleRemote:
            raise
        except BaseException:
            self.failed[item.nodeid] = "worker lost"

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self.passed.add(report.nodeid)
        elif not report.passed or hasattr(report, "wasxfail"):
            self.failed[report.nodeid] = "skipped" if report.skipped else "wrong"
        if report.when == "teardown" and report.nodeid in self.indexes:
            good = report.nodeid in self.passed and report.nodeid not in self.failed
            why = self.failed.get(report.nodeid, "")
            outcome = "passed" if good else "skipped" if why == "skipped" else "failed"
            self.recorder.add(self.indexes[report.nodeid], outcome, why, 0.0)


def _with_names(suite: Suite) -> str:
    """The tests with their free names imported, after what must stand first."""
    bound = [name for name in sys.modules[_NAMES].__dict__ if not name.startswith("__")]
    if not bound:
        return str(suite.code)
    place = 0
    for node in suite.tree.body:
        first = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not first and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        place = node.end_lineno or 0
    lines = suite.code.split("\n")
    return "\n".join([*lines[:place], "from " + _NAMES + " import " + ", ".join(sorted(bound)), *lines[place:]])


def run_pytest(suite: Suite, libraries: list[str], recorder: Recorder) -> None:
    """Collect and run the suite. Raises PackBroken when pytest cannot run here or finds nothing."""
    sys.path[:0] = libraries
    os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", HOME=_DIRECTORY)
    try:
        import pytest
    except (ImportError, SyntaxError) as error:
        raise PackBroken("the tests need pytest, which does not run in this image: " + str(error)[:200]) from None
    names = types.ModuleType(_NAMES)
    names.__dict__.update(suite.bind())
    sys.modules[_NAMES] = names
    os.mkdir(_DIRECTORY)
    path = _DIRECTORY + "/" + TESTS + ".py"
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(_with_names(suite))
    plugin = Plugin(suite, recorder)
    options = ["-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, "--rootdir", _DIRECTORY, "-q"]
    options += ["--import-mode=importlib", "-o", "python_files=" + TESTS + ".py", path]
    ended: Any = None
    try:
        ended = pytest.main(options, plugins=[plugin])
    finally:
        suite.link.test_modules.add(TESTS)
    if plugin.missing is not None:
        raise plugin.missing
    if not plugin.indexes and not plugin.errors:
        if ended == _NOTHING_COLLECTED:
            raise PackBroken("pytest found no tests")
        plugin.errors.append("ended")  # a SystemExit while collecting, which can be the candidate's
    if plugin.errors:
        recorder.spoil()
