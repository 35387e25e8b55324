"""Limits bite, and the result says which."""

from __future__ import annotations

import time

import pytest
from tests.conformance.sandbox.box import PYTHON, Box, processes_with, text

from securebench.sandboxes.base import MIB, Command, Guarantee, Limits, SandboxSpec, Scratch, Session

SPECS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["fresh", "session"])
HOG = "data = [bytearray(8 << 20) for _ in range({count})]; print('held')"


@SPECS
def test_memory_of_one_process(box: Box, mounts: tuple[Scratch, ...]) -> None:
    limits = Limits(wall_seconds=60, memory=100 * MIB)
    assert text(box.py(HOG.format(count=4), limits=limits, mounts=mounts)) == "held"
    over = box.py(HOG.format(count=40), limits=limits, mounts=mounts)
    assert not over.ok
    assert over.oom or b"MemoryError" in over.stderr.data


@SPECS
@pytest.mark.parametrize("kind", ["shared", "memfd", "children", "tmp"])
def test_memory_of_any_kind_counts_where_the_limit_is_hard(box: Box, kind: str, mounts: tuple[Scratch, ...]) -> None:
    """The kinds that resource limits miss: each alone stays below the per-process limit."""
    if Guarantee.MEM_HARD not in box.guarantees:
        pytest.skip("no hard memory limit here: needs a control group")
    programs = {
        "shared": "import mmap; m = mmap.mmap(-1, 200 << 20); m.write(b'x' * (200 << 20))",
        "memfd": "import os; f = os.memfd_create('x'); [os.write(f, b'x' * (1 << 20)) for _ in range(200)]",
        "children": "import os, time\nfor _ in range(6):\n if not os.fork(): b = bytearray(b'x' * (30 << 20)); time.sleep(30); os._exit(0)\nos.wait()",
        "tmp": "open('/tmp/x', 'wb').write(b'x' * (90 << 20)); open('/dev/shm/x', 'wb').write(b'x' * (90 << 20))",
    }
    limits = Limits(wall_seconds=60, memory=100 * MIB, tmp=150 * MIB)
    assert box.py(programs[kind], limits=limits, mounts=mounts).oom


@SPECS
def test_number_of_processes(box: Box, mounts: tuple[Scratch, ...]) -> None:
    bomb = (
        "import os, time\nmade = 0\n"
        "try:\n"
        "  for _ in range(60):\n"
        "    if not os.fork(): time.sleep(30); os._exit(0)\n"
        "    made += 1\n"
        "except OSError: pass\n"
        "print(made, flush=True); os._exit(0)"
    )
    made = int(text(box.py(bomb, limits=Limits(wall_seconds=60, pids=16), mounts=mounts)))
    assert 10 <= made <= 19
    assert int(text(box.py(bomb, limits=Limits(wall_seconds=60, pids=100), mounts=mounts))) == 60


def test_threads_count_as_processes(box: Box) -> None:
    many = (
        "import threading, time\nmade = 0\n"
        "try:\n"
        "  for _ in range(60): threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); made += 1\n"
        "except RuntimeError: pass\n"
        "print(made)"
    )
    assert int(text(box.py(many, limits=Limits(wall_seconds=60, pids=16)))) < 20


@SPECS
def test_processor_time(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.py("while True: pass", limits=Limits(wall_seconds=60, cpu_seconds=0.3), mounts=mounts)
    assert result.outcome == "cpu_limit"
    assert result.usage.cpu_seconds is None or result.usage.cpu_seconds < 20


@SPECS
def test_processor_time_of_all_processes_together(box: Box, mounts: tuple[Scratch, ...]) -> None:
    """Each child alone stays far below the limit."""
    spread = "import os, time\nfor _ in range(40):\n if not os.fork():\n  e = time.process_time() + .1\n  while time.process_time() < e: pass\n  os._exit(0)\n os.wait()"
    result = box.py(spread, limits=Limits(wall_seconds=60, cpu_seconds=0.8), mounts=mounts)
    assert result.outcome == "cpu_limit"


@SPECS
def test_wall_clock(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh("sleep 30", limits=Limits(wall_seconds=0.3), mounts=mounts)
    assert result.timed_out
    assert result.exit_code is None
    assert 0.25 < result.usage.wall_seconds < 20


def test_wall_clock_of_a_command_cannot_exceed_the_sandbox(box: Box) -> None:
    assert box.sh("sleep 30", limits=Limits(wall_seconds=0.2), command={"wall_seconds": 30.0}).timed_out
    assert box.sh("sleep 30", limits=Limits(wall_seconds=30), command={"wall_seconds": 0.2}).timed_out


@SPECS
def test_timeout_ends_double_forked_children(box: Box, mounts: tuple[Scratch, ...]) -> None:
    marker = f"44.{time.time_ns()}"
    script = f"(setsid sh -c 'trap \"\" TERM HUP; sleep {marker}; sleep {marker}' &) ; trap '' TERM; sleep {marker}"
    assert box.sh(script, limits=Limits(wall_seconds=0.5), mounts=mounts).timed_out
    assert processes_with(marker) == []


def test_end_of_a_fresh_command_ends_its_daemons(box: Box) -> None:
    marker = f"45.{time.time_ns()}"
    text(box.sh(f"(setsid sleep {marker} </dev/null >/dev/null 2>&1 &); true"))
    assert processes_with(marker) == []


@SPECS
def test_file_size(box: Box, mounts: tuple[Scratch, ...]) -> None:
    limits = Limits(wall_seconds=60, file_size=MIB, tmp=8 * MIB)
    result = box.sh("head -c 3000000 /dev/zero > /tmp/a; wc -c < /tmp/a", limits=limits, mounts=mounts)
    assert int(text(result)) == MIB


@SPECS
def test_open_files(box: Box, mounts: tuple[Scratch, ...]) -> None:
    program = "import os\nn = 0\ntry:\n  while n < 500: os.dup(0); n += 1\nexcept OSError: pass\nprint(n)"
    assert 30 < int(text(box.py(program, limits=Limits(wall_seconds=60, open_files=64), mounts=mounts))) < 64


def test_no_core_file(box: Box) -> None:
    assert text(box.sh("ulimit -c")) == "0"


@SPECS
def test_limits_cannot_be_raised(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh(
        "ulimit -n 4096 2>/dev/null && echo raised || echo refused", limits=Limits(open_files=64), mounts=mounts
    )
    assert text(result) == "refused"


@SPECS
def test_flood_of_output_ends_the_command(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh("yes", limits=Limits(wall_seconds=60, output=100_000), mounts=mounts)
    assert result.outcome == "output_limit"
    assert len(result.stdout.data) == 100_000
    assert result.stdout.total > 200_000
    assert result.stdout.truncated


def test_cpu_share(box: Box) -> None:
    if Guarantee.MEM_HARD not in box.guarantees:
        pytest.skip("no control group here")
    spin = "import time; e = time.monotonic() + 1\nwhile time.monotonic() < e: pass"
    result = box.py(spin, limits=Limits(wall_seconds=60, cpus=0.2))
    assert result.ok
    assert result.usage.cpu_seconds is not None
    assert result.usage.cpu_seconds < 0.6 * result.usage.wall_seconds


@SPECS
def test_usage_is_measured(box: Box, mounts: tuple[Scratch, ...]) -> None:
    spin = "import time; x = bytearray(40 << 20); e = time.process_time() + .3\nwhile time.process_time() < e: pass"
    usage = box.py(spin, mounts=mounts).usage
    assert usage.wall_seconds > 0.25
    assert usage.cpu_seconds is not None
    assert 0.25 < usage.cpu_seconds < 3
    if Guarantee.MEM_HARD in box.guarantees:
        assert usage.peak_memory is not None
        assert usage.peak_memory > 40 * MIB
        assert usage.peak_pids is None or usage.peak_pids <= 4


def test_session_goes_on_after_a_limit(box: Box) -> None:
    """A command that was ended takes its processes with it, not the session or its scratch."""

    async def body(session: Session) -> list[str]:
        marker = f"46.{time.time_ns()}"
        await session.run(Command(("/bin/sh", "-c", "echo kept > /work/a")))
        slow = await session.run(Command(("/bin/sh", "-c", f"(setsid sleep {marker} &); sleep 30"), wall_seconds=0.3))
        flood = await session.run(Command(("/bin/sh", "-c", "yes")))
        hog = await session.run(Command((PYTHON, "-c", HOG.format(count=60))))
        after = await session.run(Command(("/bin/cat", "/work/a")))
        return [slow.outcome, flood.outcome, str(hog.ok), text(after), str(processes_with(marker))]

    spec = SandboxSpec(mounts=(Scratch("/work"),), limits=Limits(wall_seconds=60, memory=200 * MIB, output=100_000))
    assert box.session(spec, body) == ["timeout", "output_limit", "False", "kept", "[]"]
