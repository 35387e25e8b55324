from __future__ import annotations

import resource

from securebench.sandboxes._bubblewrap.limits import OWN_PROCESSES, as_bytes, bounds
from securebench.sandboxes.base import MIB, Limits


def test_every_limit_has_its_resource() -> None:
    wanted = bounds(
        Limits(memory=50 * MIB, pids=5, file_size=MIB, open_files=32, cpu_seconds=1.2), memory_counted=False
    )
    assert wanted == {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (MIB, MIB),
        resource.RLIMIT_NOFILE: (32, 32),
        resource.RLIMIT_NPROC: (5 + OWN_PROCESSES, 5 + OWN_PROCESSES),
        resource.RLIMIT_CPU: (2, 3),
        resource.RLIMIT_DATA: (50 * MIB, 50 * MIB),
    }


def test_memory_is_left_to_the_control_group_where_there_is_one() -> None:
    assert resource.RLIMIT_DATA not in bounds(Limits(), memory_counted=True)


def test_no_processor_time_limit_unless_asked_for() -> None:
    assert resource.RLIMIT_CPU not in bounds(Limits(), memory_counted=True)


def test_bubblewrap_can_live_under_the_smallest_limits() -> None:
    wanted = bounds(Limits(file_size=0, open_files=0), memory_counted=True)
    assert wanted[resource.RLIMIT_FSIZE][0] >= 65536
    assert wanted[resource.RLIMIT_NOFILE][0] >= 16


def test_spelling() -> None:
    wanted = {resource.RLIMIT_CORE: (0, 0), resource.RLIMIT_CPU: (2, 3)}
    assert as_bytes(wanted) == f"{resource.RLIMIT_CORE}:0:0 {resource.RLIMIT_CPU}:2:3".encode()
