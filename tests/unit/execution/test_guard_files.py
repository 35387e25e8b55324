"""The guard's files as interpreters find them: whole, read-only, compiled, and gone with the process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from securebench._leftovers import is_stale
from securebench.execution import guard_files
from securebench.execution.guard_files import GUARD_SOURCE, guard_directory, guard_for
from securebench.execution.interpreter import IN_IMAGE, Interpreter

NAMES = sorted(path.name for path in GUARD_SOURCE.glob("*.py"))


def check(compiled: bytes) -> None:
    assert compiled[:4] == importlib.util.MAGIC_NUMBER
    assert int.from_bytes(compiled[4:8], "little") == 1  # goes by a hash that the importer does not check


def test_every_file_is_there_with_a_compiled_form_that_is_used_unchecked() -> None:
    made = guard_directory() / "guard"
    assert sorted(path.name for path in made.glob("*.py")) == NAMES
    for name in NAMES:
        assert (made / name).read_bytes() == (GUARD_SOURCE / name).read_bytes()
        assert (made / name).stat().st_mode & 0o777 == 0o444
        check(Path(importlib.util.cache_from_source(str(made / name))).read_bytes())


def test_they_are_made_once_and_go_with_their_process() -> None:
    assert guard_directory() is guard_directory()
    assert not is_stale(guard_directory().name)
    program = "from securebench.execution.guard_files import guard_directory; print(guard_directory())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    path = Path(done.stdout.strip())
    assert path.name.startswith("securebench-")
    assert not path.exists()


def test_an_interpreter_of_another_version_compiles_them_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_files, "_made", [tmp_path])
    (tmp_path / "guard" / "__pycache__").mkdir(parents=True)
    for name in NAMES:
        (tmp_path / "guard" / name).write_bytes((GUARD_SOURCE / name).read_bytes())
    other = tmp_path / "python"  # whose name does not say which version it is
    other.write_text(f'#!/bin/sh\necho once >> {tmp_path}/asked\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    for _ in range(2):
        assert anyio.run(guard_for, Interpreter(str(other))) == tmp_path
    assert (tmp_path / "asked").read_text() == "once\n"
    for name in NAMES:
        check(Path(importlib.util.cache_from_source(str(tmp_path / "guard" / name))).read_bytes())


@pytest.mark.parametrize("interpreter", [IN_IMAGE, Interpreter("/nowhere/python9.9")])
def test_an_interpreter_that_cannot_be_asked_here_gets_the_sources(interpreter: Interpreter) -> None:
    assert anyio.run(guard_for, interpreter) == guard_directory()
