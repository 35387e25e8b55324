"""What a request may hold, decided before anything runs."""

from __future__ import annotations

import socket

import pytest

from securebench.errors import ConfigError
from securebench.execution.request import ALLOWABLE, REPORT_FD, Blocked, PythonLimits, PythonRequest


@pytest.mark.parametrize("name", ["../up.py", "/abs.py", "a//b.py", "a\\b.py", "", "a\nb.py", "a/../b.py"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        PythonRequest(b"", name=name)
    with pytest.raises(ConfigError):
        PythonRequest(b"", files={name: b""})
    with pytest.raises(ConfigError):
        PythonRequest(b"", outputs=(name,))


def test_an_input_under_the_programs_own_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="both be called"):
        PythonRequest(b"", name="main.py", files={"MAIN.py": b""})


def test_an_input_beneath_another_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="beneath another input"):
        PythonRequest(b"", files={"data": b"", "data/x": b""})


def test_modules_are_the_top_level_names_of_submitted_python_files() -> None:
    files = {"helper.py": b"", "pack/inner/deep.py": b"", "data/table.csv": b"", "not-a-name.py": b""}
    assert PythonRequest(b"", name="main.py", files=files).modules == ("helper", "main", "pack")


@pytest.mark.parametrize("item", [*ALLOWABLE, "imports:pickle"])
def test_an_item_that_only_the_guard_forbids_may_be_allowed(item: str) -> None:
    assert PythonRequest(b"", allow=(item,)).allow == (item,)


@pytest.mark.parametrize("item", ["process", "files", "network", "signals", "nonsense", "imports:", "imports:a b"])
def test_an_item_that_the_kernel_forbids_cannot_be_allowed(item: str) -> None:
    with pytest.raises(ConfigError, match="cannot be allowed"):
        PythonRequest(b"", allow=(item,))


def test_the_guards_own_descriptor_is_not_for_channels() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ConfigError, match="guard's report"):
        PythonRequest(b"", channels={REPORT_FD: ours})


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["timeout", "memory", "cpu_seconds", "cpu_share", "pids", "disk"])
def test_a_limit_that_limits_nothing_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        PythonLimits(**{name: value})


def test_a_blocked_operation_names_its_source_line() -> None:
    assert Blocked("files", "open", file="a.py", line=3).place == "a.py:3"
    assert Blocked("files", "open", file="a.py").place == "a.py"
