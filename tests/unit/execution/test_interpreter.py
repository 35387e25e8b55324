"""Which Python runs strangers' programs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.execution import interpreter
from securebench.execution.interpreter import PYTHON_SETTING, find_interpreter, find_on_host
from securebench.sandboxes.base import HOST_ROOT_PATHS, Bind


@pytest.fixture
def prefix() -> Iterator[Path]:
    """An installation that every user may enter, unlike pytest's own directories."""
    path = Path(tempfile.mkdtemp(prefix="securebench-test-"))
    path.chmod(0o755)
    (path / "bin").mkdir(mode=0o755)
    yield path
    shutil.rmtree(path)


def _program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_interpreter_found_is_visible_inside_and_starts() -> None:
    found = find_interpreter(environ={})
    assert found.mounts == ()
    assert any(Path(found.program).is_relative_to(Path(path).resolve()) for path in HOST_ROOT_PATHS)
    done = subprocess.run(
        [found.program, "-I", "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True, check=True
    )
    assert done.stdout == b"True\n"


def test_without_a_file_system_of_its_own_our_interpreter_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "HOST_ROOT_PATHS", ())
    with pytest.raises(SandboxUnavailable, match=PYTHON_SETTING):
        find_interpreter(environ={})
    found = find_on_host(environ={}).program
    assert subprocess.run([found, "-I", "-c", "print(6 * 7)"], capture_output=True, check=True).stdout == b"42\n"


def test_a_named_interpreter_elsewhere_is_mounted_with_its_prefix(prefix: Path) -> None:
    python = _program(prefix / "bin" / "python3.13")
    found = find_interpreter(environ={PYTHON_SETTING: str(python)})
    assert found.program == str(python)
    assert found.mounts == (Bind(prefix, str(prefix)),)
    assert found.readable == (str(prefix),)


def test_the_setting_is_overruled_by_what_was_asked_for(prefix: Path) -> None:
    python = _program(prefix / "bin" / "python3.13")
    assert find_interpreter(str(python), {PYTHON_SETTING: "/nowhere"}).program == str(python)


@pytest.mark.parametrize("name", ["python2.7", "python3.6", "python3.10"])
def test_an_interpreter_that_is_too_old_is_refused(prefix: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="too old"):
        find_interpreter(str(_program(prefix / "bin" / name)))


def test_an_interpreter_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        find_interpreter("/nowhere/python3")


def test_an_interpreter_outside_a_bin_directory_is_refused(prefix: Path) -> None:
    with pytest.raises(ConfigError, match="bin directory"):
        find_interpreter(str(_program(prefix / "python3.13")))


def test_an_interpreter_behind_a_closed_door_is_refused_for_root(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = _program(prefix / "bin" / "python3.13")
    prefix.chmod(0o700)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(ConfigError, match="cannot enter"):
        find_interpreter(str(python))
