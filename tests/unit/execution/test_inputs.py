"""The operator's files: what can be read is read, what cannot is told kindly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from securebench.errors import ConfigError
from securebench.execution import inputs
from securebench.execution.inputs import read_inputs, read_program


def test_a_program_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "my tool.py").write_bytes(b"print(1)")
    assert read_program(tmp_path / "my tool.py") == ("my tool.py", b"print(1)")


def test_a_program_with_an_impossible_name_gets_another(tmp_path: Path) -> None:
    (tmp_path / "a\nb.py").write_bytes(b"")
    assert read_program(tmp_path / "a\nb.py")[0] == "program.py"


def test_a_typo_is_answered_with_the_name_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "solution.py").touch()
    with pytest.raises(ConfigError, match=r"did you mean .*solution\.py\?"):
        read_program(tmp_path / "soluton.py")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"nor does {tmp_path / 'nowhere'}"):
        read_program(tmp_path / "nowhere" / "a.py")


def test_a_directory_is_answered_with_its_main_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name a Python file"):
        read_program(tmp_path)
    (tmp_path / "__main__.py").touch()
    with pytest.raises(ConfigError, match=r"did you mean .*__main__\.py\?"):
        read_program(tmp_path)


def test_a_file_that_cannot_be_opened_is_told_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.py").symlink_to("a.py")
    with pytest.raises(ConfigError, match="cannot be read: too many levels of symbolic links"):
        read_program(tmp_path / "a.py")


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.py")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_program(tmp_path / "a.py")


def test_a_program_of_an_absurd_size_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.py").open("wb") as file:
        file.truncate(inputs.MAX_PROGRAM + 1)
    with pytest.raises(ConfigError, match="at most"):
        read_program(tmp_path / "a.py")


def test_inputs_are_files_by_name_and_directories_as_trees(tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "x").write_bytes(b"x")
    (tmp_path / "one").write_bytes(b"1")
    assert read_inputs((tmp_path / "one", tmp_path / "tree")) == {"one": b"1", "tree/deep/x": b"x"}


def test_a_link_in_an_input_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match="symbolic link"):
        read_inputs((tmp_path / "tree",))


def test_two_inputs_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").touch()
    with pytest.raises(ConfigError, match="both be called x"):
        read_inputs((tmp_path / "a" / "x", tmp_path / "b" / "x"))
