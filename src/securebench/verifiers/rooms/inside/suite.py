"""Test code as people have it: `check(candidate)`, `test_*` functions, unittest classes, or plain asserts."""

from __future__ import annotations

import ast
import random
import sys
import types
from typing import Any, Callable

from securebench.verifiers.rooms.inside.names import modules, prompt_helpers, wanted_names
from securebench.verifiers.rooms.inside.record import PackBroken, Recorder, reason
from securebench.verifiers.rooms.inside.remote import Link, Remote, StaleRemote, catches_assertions

TESTS = "hidden_tests"
CANDIDATE_MODULES = ("candidate", "solution")
Test = Callable[[], Any]


class ProxyModule(types.ModuleType):
    """The candidate's module as the tests import it."""

    def __init__(self, name: str, link: Link, names: set[str]) -> None:
        super().__init__(name)
        self.__dict__.update(_link=link, __all__=sorted(names), __file__=name + ".py")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__["_link"].request("get", None, name)
        if isinstance(found, Remote):
            return found._renewed_by("get", None, name)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # what the import system notes
            super().__setattr__(name, value)
        else:
            self.__dict__["_link"].request("set", None, name, value)


class Suite:
    """Test code and what it may take from the candidate."""

    def __init__(self, start: dict[str, Any], link: Link) -> None:
        self.code, self.entry, self.link = start["code"], start["entry"], link
        self.random = random.Random(start["seed"])
        link.may_stop = "StopIteration" in self.code or "StopAsyncIteration" in self.code
        try:
            self.tree = ast.parse(self.code)
            compile(self.tree, TESTS, "exec")
            self.helpers = {**modules(self.code, self.entry), **prompt_helpers(start["public"], self.entry)}
            self.wanted = wanted_names(self.code, self.helpers, self.entry)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise PackBroken("the tests are no Python that runs here: " + type(error).__name__) from None

    def bind(self) -> dict[str, Any]:
        """What the tests' free names stand for; from here on the candidate can be imported."""
        names = self.wanted
        for name in CANDIDATE_MODULES:
            sys.modules[name] = ProxyModule(name, self.link, names)
        found = self.link.request("names", sorted(names)) if names else {}
        if type(found) is not dict or not found.keys() <= names:
            raise self.link.fail("malformed: names that were not asked for")
        self.link.requests += len(found)
        bound = dict(self.helpers)
        for name, value in found.items():
            if catches_assertions(value):
                continue  # as if it were not there
            bound[name] = value._renewed_by("get", None, name) if isinstance(value, Remote) else value
        return bound

    def run(self, recorder: Recorder) -> None:
        module = types.ModuleType(TESTS)
        sys.modules[TESTS] = module
        module.__dict__.update(self.bind())
        functions = [node.name for node in self.tree.body if isinstance(node, ast.FunctionDef)]
        named = "check" in functions or any(name.startswith("test") for name in functions)
        if not named and not any(_has_tests(node) for node in self.tree.body):
            self.run_statements(module, recorder)
            return
        try:
            exec(compile(self.tree, TESTS + ".py", "exec"), module.__dict__)
        except StaleRemote:
            raise
        except BaseException as error:
            require_module(error)
            recorder.plan(1)
            recorder.add(0, "failed", reason(error), 0.0)
            return
        tests = self.collect(module, functions)
        if not tests:
            raise PackBroken("no test was found in the tests' classes")
        order = list(range(len(tests)))
        self.random.shuffle(order)
        recorder.plan(len(tests))
        for index in order:
            recorder.run(index, tests[index])

    def collect(self, module: types.ModuleType, functions: list[str]) -> list[Test]:
        tests: list[Test] = []
        names = [name for name in functions if name == "check" or name.startswith("test")]
        if len(set(names)) != len(names):
            raise PackBroken("two tests have the same name")
        for name in names:
            function = module.__dict__.get(name)
            if not isinstance(function, types.FunctionType):
                raise PackBroken("a test is not a function")
            tests.append(self.check(function) if name == "check" else function)
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                tests += self.methods(node, module.__dict__.get(node.name))
        return tests

    def check(self, function: Any) -> Test:
        if self.entry is None:
            raise PackBroken("tests that define check() need input.entry_point")

        def test() -> None:
            function(self.link.request("entry", self.entry))

        return test

    def methods(self, node: ast.ClassDef, cls: Any) -> list[Test]:
        unittest = sys.modules.get("unittest")
        if unittest is None or not isinstance(cls, type) or not issubclass(cls, unittest.TestCase):
            return []
        names = [item.name for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test")]
        if len(set(names)) != len(names):
            raise PackBroken("two tests have the same name")
        return [method(cls, name) for name in unittest.TestLoader().getTestCaseNames(cls)]

    # Asserts that are not in any function: one outcome for each at the top level, in the order of the text.

    def run_statements(self, module: types.ModuleType, recorder: Recorder) -> None:
        asserts = [node for node in self.tree.body if _asserts(node)]
        if not asserts:
            raise PackBroken("the tests hold no check(), no test, and no assert")
        recorder.plan(len(asserts))
        recorder.shared = True  # the statements share their variables
        index, broken = 0, False
        for node in self.tree.body:
            code = compile(ast.Module([node], []), TESTS + ".py", "exec")

            def test(code: Any = code) -> None:
                exec(code, module.__dict__)

            if node in asserts:
                if broken:
                    recorder.add(index, "failed", "an earlier statement failed", 0.0)
                else:
                    recorder.run(index, test)
                index += 1
            elif not broken:
                broken = not self.prepare(test, recorder)

    def prepare(self, statement: Test, recorder: Recorder) -> bool:
        """A statement between the asserts."""
        try:
            statement()
        except StaleRemote:
            raise
        except BaseException as error:
            require_module(error)
            return False
        return recorder.link.lost is None


def require_module(error: BaseException) -> None:
    """Raises PackBroken when the tests import what is not here. A candidate's exception never has that name in it."""
    if isinstance(error, ModuleNotFoundError) and error.name is not None and error.name not in CANDIDATE_MODULES:
        raise PackBroken("the tests import " + str(error.name) + ", which is not here") from None


def _has_tests(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        isinstance(item, ast.FunctionDef) and item.name.startswith("test") for item in node.body
    )


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    return any(isinstance(inner, ast.Assert) for inner in ast.walk(node))


def method(cls: Any, name: str) -> Test:
    """One method of a unittest class, with its set-up; skipped or expected to fail is not passed."""

    def test() -> Any:
        import unittest

        result = unittest.TestResult()
        unittest.TestSuite([cls(name)]).run(result)
        if result.skipped:
            return ("skipped", "skipped")
        if result.failures or result.errors:
            return ("failed", "wrong" if result.failures else "raised")
        clean = result.testsRun == 1 and not result.expectedFailures and not result.unexpectedSuccesses
        return ("passed", "") if clean else ("failed", "expected to fail")

    return test
