"""The parts that run inside the rooms, as far as they can be looked at from here."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from securebench.errors import ConfigError, PackError
from securebench.verifiers.rooms import codec, libraries
from securebench.verifiers.rooms.files import driver_program, worker_program
from securebench.verifiers.rooms.inside.cases import same
from securebench.verifiers.rooms.inside.names import free_names, prompt_helpers, wanted_names
from securebench.verifiers.rooms.inside.remote import Link, exception, exception_class, settle
from securebench.verifiers.rooms.libraries import needs_pytest

INSIDE = [Path(codec.__file__), *sorted(Path(codec.__file__).parent.joinpath("inside").glob("*.py"))]


@pytest.mark.parametrize("path", INSIDE, ids=lambda path: path.name)
def test_what_runs_inside_is_python_38_and_of_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    allowed = {"ast", "builtins", "fcntl", "importlib", "io", "math", "os", "pathlib", "random", "re", "securebench"}
    allowed |= {"site", "struct", "symtable", "sys", "time", "types", "typing", "unittest", "pytest", "__future__"}
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.partition(".")[0] in allowed
            assert not name.startswith("securebench.") or name.startswith("securebench.verifiers.rooms.")
        if isinstance(node, ast.Name):
            assert node.id not in {"pickle", "marshal"}


def test_a_program_fits_into_one_argument_and_names_nothing_of_ours() -> None:
    for program in (worker_program().text, driver_program().text):
        assert len(program.encode()) < 120_000
        assert "securebench.verifiers" not in program
        compile(program, "room", "exec")


def test_the_worker_program_knows_nothing_of_the_tests_side() -> None:
    assert "room_remote" not in worker_program().text
    assert "room_suite" not in worker_program().text


def test_names_the_tests_define_are_theirs() -> None:
    code = "import os\nx = 1\ndef g(): return h(x)\nclass C: pass\nassert f(x) == g()\nfor i in y: pass\nlocal = lambda z: z + w"
    assert free_names(code) == {"f", "h", "y", "w"}
    assert free_names("def f():\n    global g\n    g = 1\nassert g") == set()


def test_builtins_and_helpers_are_never_taken_from_the_candidate() -> None:
    code = "assert f(len(sum([1]))) == helper(1)"
    assert wanted_names(free_names(code), {"helper": len}, None) == {"f"}
    assert wanted_names(free_names(code), {"helper": len}, "sum") == {"f", "sum"}
    assert wanted_names(free_names("def sum(x): return x\nassert f(sum(1))"), {}, "sum") == {"f"}


def test_helpers_come_from_complete_functions_of_the_prompt_only() -> None:
    prompt = (
        "import math\ndef whole(x):\n    '''Doc.'''\n    return x + 1\ndef stub(x):\n    '''Doc.'''\n"
        "def entry(x):\n    return 1\ndef later():\n    raise NotImplementedError\nclass K:\n    def m(self): pass\n"
    )
    helpers = prompt_helpers([prompt, "Just some prose: do it!"], "entry")
    assert set(helpers) == {"math", "whole"}
    assert helpers["whole"](1) == 2


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "answer"),
    [
        (1, 1, None, True), (1.0, 1, None, True), (True, 1, None, False), (1, True, None, False), ((1, 2), [1, 2], None, True),
        ([1], [1, 2], None, False), ({"a": 1}, {"a": 1}, None, True), ({1: 1}, {"1": 1}, None, False), ("1", 1, None, False),
        (None, None, None, True), (0, None, None, False), (1.05, 1, 0.1, True), (1.5, 1, 0.1, False), (float("nan"), 1, 0.1, False),
        (float("inf"), 1, 0.5, False), (10**400, 1.0, 0.5, False), ({1}, [1], None, False), ([[1.0]], [[1]], 0.1, True), (object(), 1, None, False),
    ],
)  # fmt: skip
def test_values_of_cases(found: Any, expected: Any, tolerance: Any, answer: bool) -> None:
    assert same(found, expected, tolerance) is answer


def test_arguments_are_changed_in_place() -> None:
    inner = [1]
    old: list[Any] = [inner, {"a": inner}, {1}, 5]
    settle(old, [[1, 2], {"b": 1, "a": [1, 2, 3]}, {2}, 6])
    assert old == [[1, 2, 3], {"b": 1, "a": [1, 2, 3]}, {2}, 6]
    assert old[0] is inner
    settle(old, [])
    assert old == []


@pytest.mark.parametrize(
    "name",
    ["SkipTest", "Skipped", "Exit", "KeyboardInterrupt", "GeneratorExit", "WorkerLost", "BaseException", "Outcome"],
)
def test_no_name_becomes_a_signal_of_a_runner(name: str) -> None:
    made = exception_class((name, "BaseException", "object"))
    assert issubclass(made, Exception)
    assert made.__module__ in {"candidate", "builtins"}


def test_exceptions_keep_their_kin_and_their_words() -> None:
    assert exception_class(("ValueError", "Exception")) is ValueError
    mine = exception_class(("Mine", "LookupError", "Exception"))
    assert issubclass(mine, LookupError)
    assert exception_class(("Mine", "LookupError", "Exception")) is mine
    error = exception(codec.Thrown(("UnicodeDecodeError", "ValueError"), "words", None))
    assert isinstance(error, UnicodeDecodeError)
    assert str(error) == "words"
    assert exception(codec.Thrown(("KeyError",), "'k'", ("k",))).args == ("k",)


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("import pytest", True), ("from pytest import raises", True), ("def f():\n    import pytest", True), ("import pytester", False),
        ("class TestA:\n    def test_a(self): pass", True), ("class TestA(Base):\n    def test_a(self): pass", False), ("assert f()", False),
    ],
)  # fmt: skip
def test_pytest_is_asked_for_where_it_is_needed(code: str, needed: bool) -> None:
    assert needs_pytest(code) is needed


def test_fixtures_are_seen() -> None:
    assert needs_pytest("def test_a(tmp_path): pass")
    assert not needs_pytest("def test_a(x=1): pass\ndef helper(y): pass")


def test_tests_that_are_no_python_are_the_packs_fault() -> None:
    with pytest.raises(PackError):
        needs_pytest("def test")


def test_without_pytest_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"securebench\[pytest\]"):
        libraries.pytest_mounts()


class _Guesses:
    """A worker's line on which the answers to the next questions lie before they are asked."""

    def __init__(self, numbers: list[int]) -> None:
        self.asked: list[int] = []
        self._waiting = [b"W" + codec.encode([number, "value", 14, None, ""]) for number in numbers]

    def send(self, data: bytes) -> None:
        self.asked.append(codec.decode(data[1:])[0])

    def receive(self) -> bytes:
        return self._waiting.pop(0)


def test_nobody_can_answer_what_was_not_asked_yet() -> None:
    asked: list[int] = []
    for _ in range(3):
        pipe = _Guesses([*asked[-1:], 1, 2])
        with pytest.raises(BaseException, match="not an answer to what was asked"):
            Link(pipe, set()).request("call", None)  # type: ignore[arg-type]
        asked += pipe.asked
    assert len(set(asked)) == 3
    assert max(asked) > 2**32
