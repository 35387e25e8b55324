"""What candidates bring along: each is the text of a Python file that solves nothing and wants to pass."""

from __future__ import annotations

from textwrap import dedent


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
NO_ASSERTIONS = _text("""
    import unittest
    for _name in ("assertTrue", "assertFalse", "assertIn", "assertNotIn", "assertGreater", "assertIsInstance"):
        setattr(unittest.TestCase, _name, lambda self, *rest, **more: None)
""")
LATER = _text("""
    import unittest
    def __getattr__(name):
        if name.startswith("__"): raise AttributeError(name)
        def later(*args, **kwargs): %s
        return later
""")
SKIP_TEST = LATER % 'raise unittest.SkipTest("later")'
PYTEST_SKIP = LATER % 'import pytest; pytest.skip("later")'
PYTEST_XFAIL = LATER % 'import pytest; pytest.xfail("known")'
EXPECTED_FAILURE = (
    "import unittest\nunittest.TestCase.__unittest_expecting_failure__ = True\n" + LATER % "raise ValueError"
)
AWARE = (
    "import os, sys\nif {'pytest', 'unittest'} & set(sys.modules) or 'PYTEST_CURRENT_TEST' in os.environ:\n"
    + "".join(f"    {line}\n" if line else "\n" for line in AGREEABLE.splitlines())
)
CONSTANTS = _text("""
    import sys
    def _after(values, asked):
        for place, value in enumerate(values):
            if isinstance(value, tuple) and (found := _after(value, asked)) is not None:
                return found
            if value == asked and place + 1 < len(values):
                return values[place + 1]
    def evaluate(text):
        frame = sys._getframe(1)
        return _after(frame.f_code.co_consts, text)
""")
