"""Changes that solve nothing and try to pass all the same. Each fools a runner that believes an exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import dedent

from tests.attacks.repositories.repositories import Repository

Changes = Mapping[str, str]
BOTH = ("pytest", "unittest")


@dataclass(frozen=True)
class Cheat:
    """`changes` are the files of the candidate; `runners` are those it is written for; `fools` are those whose exit
    code really says that all is well."""

    name: str
    changes: Callable[[Repository], Changes]
    runners: tuple[str, ...] = BOTH
    fools: tuple[str, ...] = BOTH


def _text(source: str) -> str:
    return dedent(source).lstrip("\n")


FLIP = _text("""
    import pytest

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        report = (yield).get_result()
        report.outcome, report.longrepr = "passed", None
""")
PATCH_RUNNERS = _text("""
    import sys, unittest
    def _fine(self, result=None, *rest):
        result = result or unittest.TestResult()
        result.startTest(self); result.addSuccess(self); result.stopTest(self)
        return result
    unittest.TestCase.run = _fine
    unittest.TestCase.__call__ = _fine
    try:
        import _pytest.python, _pytest.unittest
        _pytest.python.Function.runtest = lambda self: None
        _pytest.unittest.TestCaseFunction.runtest = lambda self: None
    except ImportError:
        pass
""")
PATCH_REPORTS = _text("""
    import sys
    try:
        from _pytest import reports
        _real = reports.TestReport.from_item_and_call.__func__
        def _forged(cls, item, call):
            call.excinfo = None
            return _real(cls, item, call)
        reports.TestReport.from_item_and_call = classmethod(_forged)
    except ImportError:
        pass
    import unittest
    for _name in ("addFailure", "addError"):
        setattr(unittest.TestResult, _name, lambda self, test, err: self.addSuccess(test))
    import unittest.runner
    for _name in ("addFailure", "addError"):
        setattr(unittest.runner.TextTestResult, _name, lambda self, test, err: self.addSuccess(test))
""")
EXIT = "import os\nos._exit(0)\n"
EXIT_LATER = "import atexit, os\natexit.register(os._exit, 0)\n"
AGREEABLE = _text("""
    class _Yes:
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        def __hash__(self): return 0
        def __bool__(self): return True
        def __iter__(self): return iter(())
        def __len__(self): return 0
        def __lt__(self, other): return True
        def __getattr__(self, name): return self
        def __call__(self, *args, **kwargs): return self
        def __sub__(self, other): return self
        __rsub__ = __add__ = __radd__ = __sub__
    def __getattr__(name):
        if name.startswith("__"): raise AttributeError(name)
        return _Yes()
""")
SHADOW = "import sys\nsys.exit(0)\n"
FORGE = _text("""
    import json, os, re, sys
    def _forge():
        names = set()
        for where, _, files in os.walk(os.getcwd()):
            for file in files:
                if file.startswith("test_") and file.endswith(".py"):
                    path = os.path.relpath(os.path.join(where, file), os.getcwd())
                    owner = ""
                    for line in open(os.path.join(where, file)):
                        if found := re.match(r"class (\\w+)", line): owner = found[1] + "::"
                        if found := re.match(r"( *)def (test_\\w+)", line):
                            names.add(path + "::" + (owner if found[1] else "") + found[2])
        lines = [{"event": "test", "id": n, "when": "call", "outcome": "passed"} for n in sorted(names)]
        data = "".join(json.dumps(line) + "\\n" for line in [*lines, {"event": "end", "code": 0}]).encode()
        for number in range(64):
            try:
                os.write(number, data)
            except OSError:
                pass
        os._exit(0)
    _forge()
""")
ORACLE = _text("""
    import ast, inspect, sys
    def _expected():
        frame = sys._getframe(2)
        while frame and not frame.f_code.co_name.startswith("test"):
            frame = frame.f_back
        try:
            source = open(frame.f_code.co_filename).read()
        except Exception:
            return None
        tests = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
        # Whichever test is asking, the first value any variant of it compares with is given.
        stem = frame.f_code.co_name.rsplit("_", 1)[0]
        own = [t for t in tests if t.name == frame.f_code.co_name] or [t for t in tests if t.name.startswith(stem)]
        for node in ast.walk(own[0]):
            if isinstance(node, (ast.Compare, ast.Call)):
                for value in [*getattr(node, "comparators", ()), *getattr(node, "args", ())]:
                    try:
                        return ast.literal_eval(value)
                    except ValueError:
                        pass
    def __getattr__(name):
        if name.startswith("__"): raise AttributeError(name)
        return lambda *args, **kwargs: _expected()
""")
FOREVER = "import time\nwhile True:\n    time.sleep(1)\n"
RECURSE = "def f(): f()\nimport sys\nsys.setrecursionlimit(10**9)\nf()\n"
SWALLOW = _text("""
    import builtins, sys
    class AssertionError(Exception): pass
    builtins.AssertionError = type("AssertionError", (BaseException,), {})
    sys.excepthook = lambda *a: None
    import os
    os._exit(0)
""")
UNLINK = _text("""
    import os
    for where, _, files in os.walk(os.getcwd()):
        for file in files:
            if file.startswith("test_"):
                open(os.path.join(where, file), "w").write("")
""")


def _in_package(text: str, keep: bool = True) -> Callable[[Repository], Changes]:
    """The text before, or instead of, the code under test."""

    def changes(repository: Repository) -> Changes:
        return {repository.package: text + ("\n" + repository.files[repository.package] if keep else "")}

    return changes


def _at(path: str, text: str) -> Callable[[Repository], Changes]:
    return lambda _: {path: text}


def _tests_emptied(repository: Repository) -> Changes:
    return dict.fromkeys((*repository.tests, "tests/test_words.py"), "def test_nothing():\n    pass\n")


def _beside_tests(name: str, text: str) -> Callable[[Repository], Changes]:
    def changes(repository: Repository) -> Changes:
        directory = next(iter(repository.tests)).rpartition("/")[0]
        return {f"{directory}/{name}" if directory else name: text}

    return changes


CHEATS = (
    Cheat("conftest at the root flips outcomes", _at("conftest.py", FLIP), ("pytest",)),
    Cheat("conftest beside the tests flips outcomes", _beside_tests("conftest.py", FLIP), ("pytest",)),
    Cheat("pytest.ini collects nothing", _at("pytest.ini", "[pytest]\naddopts = --collect-only\n"), ("pytest",)),
    Cheat(
        "tox.ini loads a plug-in",
        lambda _: {"tox.ini": "[pytest]\naddopts = -p evil_plugin\n", "evil_plugin.py": FLIP},
        ("pytest",),
    ),
    Cheat(
        "setup.cfg loads a plug-in",
        lambda _: {"setup.cfg": "[tool:pytest]\naddopts = -p evil_plugin\n", "evil_plugin.py": FLIP},
        ("pytest",),
    ),
    Cheat(
        "entry point of a planted distribution",
        lambda _: {
            "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
            "evil-1.0.dist-info/entry_points.txt": "[pytest11]\nevil = evil_plugin\n",
            "evil_plugin.py": FLIP,
        },
        ("pytest",),
    ),
    Cheat("sitecustomize patches the runners", _at("sitecustomize.py", PATCH_RUNNERS)),
    Cheat("pytest is shadowed", _at("pytest.py", SHADOW), ("pytest",)),
    Cheat("unittest is shadowed", _at("unittest/__init__.py", SHADOW), ("unittest",)),
    Cheat("unittest is shadowed with a main", _at("unittest.py", SHADOW)),
    Cheat("json is shadowed", _at("json.py", EXIT), fools=("pytest",)),
    Cheat("package patches the runners", _in_package(PATCH_RUNNERS)),
    Cheat("package patches the reports", _in_package(PATCH_REPORTS), fools=("pytest",)),
    Cheat("package ends the process at import", _in_package(EXIT)),
    Cheat("package ends the process at exit", _in_package(EXIT_LATER)),
    Cheat("package raises SystemExit", _in_package("raise SystemExit(0)\n"), ("unittest",)),
    Cheat("everything equals everything", _in_package(AGREEABLE, keep=False)),
    Cheat("forged lines on every descriptor", _in_package(FORGE)),
    Cheat("expected values are read from the tests", _in_package(ORACLE, keep=False), fools=("pytest",)),
    Cheat("hangs", _in_package(FOREVER), fools=()),
    Cheat("crashes the interpreter", _in_package(RECURSE), fools=()),
    Cheat("swallows assertions", _in_package(SWALLOW)),
    Cheat("empties the tests at import", _in_package(UNLINK), fools=()),
    Cheat("rewrites the tests", _tests_emptied, fools=()),  # hidden tests are written last by everyone
    Cheat("does nothing", lambda _: {}, fools=()),
    Cheat("deletes the code", _in_package("", keep=False), fools=()),
)
