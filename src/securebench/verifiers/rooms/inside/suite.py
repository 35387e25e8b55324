"""Test code as people have it: `check(candidate)`, `test_*` functions, unittest classes, or plain asserts."""

from __future__ import annotations

import ast
import random
import sys
import types

from securebench.verifiers.rooms.inside.names import free_names, modules, prompt_helpers, wanted_names
from securebench.verifiers.rooms.inside.record import PackBroken, Recorder, Said, reason
from securebench.verifiers.rooms.inside.remote import Link, Remote, StaleRemote, catches_assertions

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any, Callable, Iterator

    Test = Callable[[], Any]
    Definition = Any
    """A function or class in the syntax tree."""

TESTS = "hidden_tests"
CANDIDATE_MODULES = ("candidate", "solution")


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
            self.compiled = compile(self.tree, TESTS + ".py", "exec", dont_inherit=True)
            free = free_names(self.code)
            self.helpers = {**modules(self.tree, free - {self.entry}), **prompt_helpers(start["public"], self.entry)}
            self.wanted = wanted_names(free, self.helpers, self.entry)
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
        self.link.requests += sum(not isinstance(value, Remote) for value in found.values())
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
        nodes = list(definitions(self.tree.body))
        functions = [node.name for node in nodes if not isinstance(node, ast.ClassDef)]
        named = "check" in functions or any(name.startswith("test") for name in functions)
        if not named and not any(_has_tests(node) for node in nodes):
            self.run_statements(module, recorder)
            return
        try:
            exec(self.compiled, module.__dict__)
        except StaleRemote:
            raise
        except BaseException as error:
            require_module(error)
            recorder.plan(1)
            recorder.add(0, "failed", reason(error), 0.0)
            return
        tests = self.collect(module, nodes)
        if not tests:
            raise PackBroken("no test was found in the tests' classes")
        order = list(range(len(tests)))
        self.random.shuffle(order)
        recorder.plan(len(tests))
        for index in order:
            recorder.run(index, tests[index])

    def collect(self, module: types.ModuleType, nodes: list[Definition]) -> list[Test]:
        tests: list[Test] = []
        names = [node.name for node in nodes if _is_test(node)]
        if len(set(names)) != len(names):
            raise PackBroken("two tests have the same name")
        for name in names:
            if name not in module.__dict__:
                tests.append(absent)
                continue
            function = module.__dict__[name]
            if not isinstance(function, types.FunctionType):
                raise PackBroken("a test is not a function")
            require_runs(function)
            tests.append(self.check(function) if name == "check" else calling(function))
        for node in nodes:
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
        if cls is None and _has_tests(node):
            return [absent]
        unittest = sys.modules.get("unittest")
        if unittest is None or not isinstance(cls, type) or not issubclass(cls, unittest.TestCase):
            if node.name.startswith("Test") and _has_tests(node):
                raise PackBroken(
                    "only pytest runs the tests of a class that is no TestCase; import pytest in the tests"
                )
            return []
        names = [item.name for item in node.body if isinstance(item, _FUNCTIONS) and item.name.startswith("test")]
        if len(set(names)) != len(names):
            raise PackBroken("two tests have the same name")
        found = unittest.TestLoader().getTestCaseNames(cls)
        if not issubclass(cls, getattr(unittest, "IsolatedAsyncioTestCase", ())):
            for name in found:
                require_runs(getattr(cls, name))
        return [method(cls, name) for name in found]

    # Asserts that are not in any function: one outcome for each at the top level, in the order of the text.

    def run_statements(self, module: types.ModuleType, recorder: Recorder) -> None:
        asserts = [node for node in self.tree.body if _asserts(node)]
        if not asserts:
            raise PackBroken("the tests hold no check(), no test, and no assert")
        if any(_is_guarded(node) for node in asserts):
            raise PackBroken("asserts under a condition on __name__ are not run here; put them at the top level")
        recorder.plan(len(asserts))
        recorder.shared = True  # the statements share their variables
        index, broken = 0, False
        for node in self.tree.body:
            code = compile(ast.Module([node], []), TESTS + ".py", "exec", dont_inherit=True)

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
        if broken:
            recorder.spoil()  # perhaps after the last assert

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


def require_runs(function: Any) -> None:
    """Raises PackBroken for a test that, when it is called, only makes a generator or a coroutine."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _MAKES_AN_OBJECT:
        raise PackBroken("a test is a generator or a coroutine, which nothing here runs")


def absent() -> None:
    """A test under a condition that did not hold, perhaps because of what the candidate returned."""
    raise AssertionError


def calling(function: Any) -> Test:
    """What a test returns says nothing."""

    def test() -> None:
        function()

    return test


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAKES_AN_OBJECT = 0x20 | 0x80 | 0x200  # flags of generators, coroutines, and both


def definitions(body: list[Any]) -> Iterator[Definition]:
    """The functions and classes of a module, also those under conditions."""
    for node in body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from definitions(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from definitions(handler.body)


def _is_test(node: Definition) -> bool:
    return isinstance(node, _FUNCTIONS) and (node.name == "check" or node.name.startswith("test"))


def _has_tests(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        isinstance(item, _FUNCTIONS) and item.name.startswith("test") for item in node.body
    )


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return False
    return any(isinstance(inner, ast.Assert) for inner in ast.walk(node))


def _is_guarded(node: ast.AST) -> bool:
    names = ast.walk(node.test) if isinstance(node, ast.If) else ()
    return any(isinstance(name, ast.Name) and name.id == "__name__" for name in names)


def method(cls: Any, name: str) -> Test:
    """One method of a unittest class, with its set-up; skipped or expected to fail is not passed."""

    def test() -> Any:
        import unittest

        result = unittest.TestResult()
        unittest.TestSuite([cls(name)]).run(result)
        if result.skipped:
            return Said("skipped", "skipped")
        if result.failures or result.errors:
            return Said("failed", "wrong" if result.failures else "raised")
        clean = result.testsRun == 1 and not result.expectedFailures and not result.unexpectedSuccesses
        return Said("passed", "") if clean else Said("failed", "expected to fail")

    return test
