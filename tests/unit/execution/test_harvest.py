"""What a dead program left is read without believing or following any of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from securebench.execution.harvest import MAX_BLOCKED, bytes_left, read_report, take_outputs
from securebench.execution.request import Blocked


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_declared_output_is_taken(tmp_path: Path, root: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"data")
    taken = take_outputs(root, ("a/b", "missing"), 100)
    assert taken.outputs == {"a/b": b"data"}
    assert taken.refused == {"missing": "missing does not exist"}


def test_links_special_files_and_directories_are_refused(tmp_path: Path, root: int) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "through").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    taken = take_outputs(root, ("link", "through/passwd", "fifo", "folder"), 1 << 20)
    assert taken.outputs == {}
    assert "symbolic link" in taken.refused["link"]
    assert "symbolic link" in taken.refused["through/passwd"]
    assert "neither a regular file" in taken.refused["fifo"]
    assert "not a regular file" in taken.refused["folder"]


def test_the_budget_is_for_all_outputs_together(tmp_path: Path, root: int) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"x" * 60)
    taken = take_outputs(root, ("a", "b"), 100)
    assert list(taken.outputs) == ["a"]
    assert "at most 40" in taken.refused["b"]


def test_bytes_left_counts_what_came_on_top_of_the_inputs(tmp_path: Path, root: int) -> None:
    (tmp_path / "input").write_bytes(b"12345")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "new").write_bytes(b"x" * 1000)
    assert bytes_left(root, 5, own_file_system=False) == 1000


def test_holes_are_not_counted(tmp_path: Path, root: int) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    left = bytes_left(root, 0, own_file_system=False)
    assert left is not None
    assert left < 1 << 20


def test_a_tree_that_cannot_be_walked_is_not_guessed(tmp_path: Path, root: int) -> None:
    (tmp_path / "link").symlink_to("/")
    assert bytes_left(root, 0, own_file_system=False) is None
    assert bytes_left(root, 0, own_file_system=True) is not None


LINE = {"item": "files", "operation": "open", "message": "open: outside", "file": "/r/a.py", "line": 3}


def _report(*lines: object) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_a_report_names_what_was_installed_and_blocked() -> None:
    report = read_report(_report({"installed": ["hook"]}, LINE), "/r")
    assert report.installed == ("hook",)
    assert report.blocked == (Blocked("files", "open", "open: outside", "a.py", 3),)


@pytest.mark.parametrize("data", [b"", b"{}\n", b'{"installed": "hook"}\n', b"nonsense\n", b"[]\n", _report(LINE)])
def test_a_report_without_its_first_line_says_that_nothing_is_installed(data: bytes) -> None:
    assert read_report(data, "/r").installed is None


def test_hostile_lines_are_dropped_or_cut() -> None:
    hostile = [
        [],
        {"operation": 5},
        {"operation": "x" * 10_000, "line": -1, "file": ["a"]},
        {"operation": "y", "line": True},
        {"operation": "z", "line": 10**30},
    ]
    data = _report({"installed": []}, *hostile) + b'{"operation": "torn"' + b"\xff\xfe\n" + b"[" * 100_000
    blocked = read_report(data, "/r").blocked
    assert [len(item.operation) for item in blocked] == [500, 1, 1]
    assert {item.line for item in blocked} == {0}


def test_a_flood_of_lines_is_bounded() -> None:
    assert len(read_report(_report({"installed": []}, *[LINE] * (2 * MAX_BLOCKED)), "/r").blocked) == MAX_BLOCKED
