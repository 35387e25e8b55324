"""Programs of ours from bytecode: they run as from their source, and an interpreter of another version refuses them."""

from __future__ import annotations

import os

import anyio
import pytest

from securebench.sandboxes._bubblewrap import compiled as compiling
from securebench.sandboxes.base import Command, PythonProgram, SandboxResult, SandboxSpec, run_once
from securebench.sandboxes.bubblewrap import BubblewrapSandbox

PROGRAM = PythonProgram(
    (("first", "word = 'said'"), ("second", "import first\ndef main(): print(first.word, __name__)")),
    "import second, sys; second.main(); print(sys.argv)",
    ("a", "b"),
)


def run(program: PythonProgram) -> SandboxResult:
    sandbox = BubblewrapSandbox()
    if not (found := anyio.run(sandbox.probe)).usable:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(found.remedy)
    return anyio.run(run_once, sandbox, SandboxSpec(), Command(program.argv, python=program))


def test_a_program_runs_as_from_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_made", {})
    from_bytecode = run(PROGRAM)
    assert from_bytecode.stdout.data == b"said second\n['-c', 'a', 'b']\n", from_bytecode.stderr.data
    assert compiling._made[PROGRAM] is not None
    monkeypatch.setattr(compiling, "_LONGEST", 0)  # nothing fits, so the source is given
    monkeypatch.setattr(compiling, "_made", {})
    assert run(PROGRAM).stdout == from_bytecode.stdout
    assert compiling._made == {PROGRAM: None}


def test_a_program_without_modules_runs() -> None:
    assert run(PythonProgram((), "print('alone')")).stdout.data == b"alone\n"


def test_another_interpreters_bytecode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_made", {})
    monkeypatch.setattr(compiling, "_COMPILE", compiling._COMPILE.replace("MAGIC_NUMBER +", "b'1234' +"))
    result = run(PROGRAM)
    assert result.exit_code == 1
    assert b"not the one that compiled this" in result.stderr.data
