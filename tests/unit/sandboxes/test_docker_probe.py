"""A guarantee is advertised only if the attempt against it failed; versions, states and owners are read right."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from securebench.sandboxes._docker import owner as _docker_owner
from securebench.sandboxes._docker.owner import Owner
from securebench.sandboxes._docker.probe import _known_holes, judge, parse_version
from securebench.sandboxes._docker.state import State, _time
from securebench.sandboxes.base import Guarantee, Outcome

GOOD = """tmp
processes 2
interface lo
CapEff: 0000000000000000
NoNewPrivs: 1
Seccomp: 2
release 6.1.0
"""


def _given(text: str, eaten: Outcome = Outcome.OUT_OF_MEMORY) -> set[Guarantee]:
    return {guarantee for guarantee, finding in judge(text, eaten, release="6.1.0").items() if finding.ok}


WALLS = {Guarantee.FS, Guarantee.PID, Guarantee.NET, Guarantee.MEM_HARD}


def test_all_walls_stand() -> None:
    assert _given(GOOD) == WALLS


@pytest.mark.parametrize(
    "text,eaten,lost",
    [
        ("wrote\n" + GOOD, Outcome.OUT_OF_MEMORY, Guarantee.FS),
        (GOOD.replace("tmp\n", ""), Outcome.OUT_OF_MEMORY, Guarantee.FS),
        (GOOD.replace("CapEff: 0000000000000000", "CapEff: 00000000a80425fb"), Outcome.OUT_OF_MEMORY, Guarantee.FS),
        (GOOD.replace("NoNewPrivs: 1", "NoNewPrivs: 0"), Outcome.OUT_OF_MEMORY, Guarantee.FS),
        (GOOD.replace("processes 2", "processes 150"), Outcome.OUT_OF_MEMORY, Guarantee.PID),
        (GOOD.replace("processes 2\n", ""), Outcome.OUT_OF_MEMORY, Guarantee.PID),
        (GOOD + "interface eth0\n", Outcome.OUT_OF_MEMORY, Guarantee.NET),
        (GOOD.replace("Seccomp: 2", "Seccomp: 0"), Outcome.OUT_OF_MEMORY, Guarantee.NET),
        (GOOD, Outcome.TIMEOUT, Guarantee.MEM_HARD),
    ],
)
def test_wall_that_fell_is_not_advertised(text: str, eaten: Outcome, lost: Guarantee) -> None:
    assert _given(text, eaten) == WALLS - {lost}


def test_nothing_printed_is_nothing_guaranteed() -> None:
    assert _given("", Outcome.EXITED) == set()


def test_kernel_of_its_own_is_another_release() -> None:
    assert Guarantee.KERNEL in _given(
        GOOD.replace("release 6.1.0", "release 4.4.0").replace("Seccomp: 2", "Seccomp: 0")
    )


@pytest.mark.parametrize(
    "text,numbers", [("1.1.5+ds1", (1, 1, 5)), ("v1.3.3", (1, 3, 3)), ("20.10.24+dfsg1", (20, 10, 24)), ("?", None)]
)
def test_versions_are_read(text: str, numbers: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == numbers


@pytest.mark.parametrize(
    "version,hole",
    [("1.1.5", True), ("1.2.7", True), ("1.2.8", False), ("1.3.2", True), ("1.3.3", False), ("1.4.0", False)],
)
def test_old_runc_is_noted(version: str, hole: bool) -> None:
    assert bool(_known_holes({"runc": version})) == hole


def test_times_of_the_engine_are_read() -> None:
    assert _time("0001-01-01T00:00:00Z") is None
    assert _time("2026-11-16T03:23:43.97149922Z") == datetime(2026, 11, 16, 3, 23, 43, 971499, UTC)


@pytest.mark.parametrize(
    "code,expected", [(0, (0, None)), (3, (3, None)), (137, (None, 9)), (139, (None, 11)), (255, (255, None))]
)
def test_exit_codes_above_128_are_signals(code: int, expected: tuple[int | None, int | None]) -> None:
    ending = State(False, code, False, "", 0, None, None).ending
    assert (ending.exit_code, ending.signal) == expected


def test_owner_is_stale_only_where_its_process_number_means_something() -> None:
    mine, dead = Owner.new().session, "securebench-999999999-1-ab"
    here = _docker_owner.here()
    assert not _docker_owner._is_left(["name", "running", mine, here])
    assert _docker_owner._is_left(["name", "running", dead, here])
    assert not _docker_owner._is_left(["name", "running", dead, "elsewhere:1"])
    assert _docker_owner._is_left(["name", "exited", dead, "elsewhere:1"])
    assert not _docker_owner._is_left(["someone-elses"])
    assert mine.startswith(f"securebench-{os.getpid()}-")
