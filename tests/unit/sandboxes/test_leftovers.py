from __future__ import annotations

import os
import subprocess

import pytest

from securebench._leftovers import (
    clean_processes,
    is_stale,
    owned_name,
    owner_mark,
    staging_directory,
    start_time,
)


def test_own_name_is_not_stale() -> None:
    assert not is_stale(owned_name("x"))


def test_name_of_an_earlier_process_with_our_number_is_stale() -> None:
    assert is_stale(f"securebench-{os.getpid()}-{start_time(os.getpid()) - 1}-x")


def test_name_of_a_process_that_is_gone_is_stale() -> None:
    assert is_stale("securebench-4194305-1-x")


def test_name_of_a_process_that_has_ended_and_was_never_reaped_is_stale() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        name = f"securebench-{process.pid}-{start_time(process.pid)}-x"
        assert not is_stale(name)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_stale(name)


@pytest.mark.parametrize(
    "name", ["securebench", "securebench-1", "securebench-a-b-c", "other-1-1-x", "securebench-conformance-1"]
)
def test_name_that_is_not_ours_is_left_alone(name: str) -> None:
    assert not is_stale(name)


def test_staging_directory_can_be_passed_through_but_not_listed_and_goes_away() -> None:
    with staging_directory() as path:
        assert path.stat().st_mode & 0o777 == 0o711
        (path / "x").touch()
    assert not path.exists()


def test_process_of_a_dead_engine_is_ended_and_that_of_a_live_one_is_not() -> None:
    with subprocess.Popen(["sleep", "60"], env=owner_mark()) as live:
        try:
            assert any(_stale_is_ended() for _ in range(20))
            assert live.poll() is None
        finally:
            live.kill()


def _stale_is_ended() -> bool:
    """Whether it was by us: engines of other tests look for such processes, too."""
    with subprocess.Popen(["sleep", "60"], env={"SECUREBENCH_OWNER": "securebench-1-1-process"}) as stale:
        try:
            ended = f"process {stale.pid}" in clean_processes()
            assert not ended or stale.wait(50) == -9
            return ended
        finally:
            stale.kill()
