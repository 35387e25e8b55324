"""Nothing remains: after success, failure, cancellation, many at once, or the engine's own death."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.conformance.sandbox.box import Box, processes_with, text

from securebench import _leftovers
from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import gate as _gate
from securebench.sandboxes._bubblewrap.cgroups import clean_leftovers, find_controllers
from securebench.sandboxes.base import Command, Limits, SandboxResult, SandboxSpec, Scratch, run_once

SPECS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["fresh", "session"])


_OWN = f"securebench-{os.getpid()}-"


def _groups(owner: str) -> set[str]:
    controllers = find_controllers()
    parents = set(controllers.parents.values()) if controllers else set()
    return {str(path) for parent in parents for path in parent.glob(f"securebench-{owner}-*")}


def _children() -> set[int]:
    """Our children, zombies included, but for the spawner, which stays on purpose."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid() and b"spawner" not in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
    return found


def state() -> dict[str, set[Any]]:
    """What this process holds of the host. Descriptors are counted, since their numbers are used again."""
    gc.collect()  # what earlier tests left in cycles is closed now, and not between two readings
    return {
        "groups": _groups(str(os.getpid())),
        "directories": set(Path(tempfile.gettempdir()).glob(f"securebench-{os.getpid()}-*")),
        "mounts": {
            line for line in Path("/proc/self/mounts").read_text().splitlines() if "/newroot" in line or _OWN in line
        },
        "descriptors": set(range(len(os.listdir("/proc/self/fd")))),
        "children": _children(),
    }


def left_since(before: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """What is held now and was not before. What other tests left and is gone by now does not matter."""
    return {name: more for name, now in state().items() if (more := now - before[name])}


@SPECS
def test_nothing_remains_after_many_in_sequence(box: Box, mounts: tuple[Scratch, ...]) -> None:
    box.sh("true", mounts=(Scratch("/work"),))
    before = state()
    for turn in range(8):
        box.sh(f"(setsid sleep 60 &); exit {turn}", mounts=mounts)
        box.run("no-such-program", mounts=mounts)
        box.sh("sleep 9", mounts=mounts, limits=Limits(wall_seconds=0.01))
    assert left_since(before) == {}


@SPECS
def test_many_at_once(box: Box, mounts: tuple[Scratch, ...]) -> None:
    count = box.at_once
    box.sh("true", mounts=(Scratch("/work"),))
    before = state()
    results: dict[int, SandboxResult] = {}

    async def one(number: int) -> None:
        spec = SandboxSpec(mounts=mounts, limits=Limits(wall_seconds=60))
        script = f"echo {number} > /tmp/n; sleep 0.2; cat /tmp/n; set -- /tmp/*; echo $#"
        results[number] = await run_once(box.sandbox, spec, Command(("/bin/sh", "-c", script)))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(one, number)

    anyio.run(main)
    assert {number: text(result).split() for number, result in results.items()} == {
        number: [str(number), "1"] for number in range(count)
    }
    assert left_since(before) == {}


@SPECS
@pytest.mark.parametrize("delay", [0.0, 0.004, 0.012, 0.2])
def test_cancellation_leaves_nothing(box: Box, delay: float, mounts: tuple[Scratch, ...]) -> None:
    box.sh("true", mounts=(Scratch("/work"),))
    before = state()
    marker = f"48.{time.time_ns()}"

    async def main() -> None:
        spec = SandboxSpec(mounts=mounts, limits=Limits(wall_seconds=60))
        with anyio.move_on_after(delay):
            await run_once(box.sandbox, spec, Command(("/bin/sh", "-c", f"(setsid sleep {marker} &); sleep {marker}")))

    anyio.run(main)
    assert processes_with(marker) == []
    assert left_since(before) == {}


@SPECS
def test_error_in_the_callers_callback_leaves_nothing(box: Box, mounts: tuple[Scratch, ...]) -> None:
    box.sh("true", mounts=(Scratch("/work"),))
    before = state()

    def refuse(name: str, data: bytes) -> None:
        raise ValueError(name)

    with pytest.raises(ValueError, match="stdout"):
        box.sh("echo x; sleep 30", mounts=mounts, command={"on_output": refuse})
    assert left_since(before) == {}


ENGINE = """
import anyio, sys
from securebench.sandboxes.select import make_sandbox
from securebench.sandboxes.base import *
async def main():
    mounts = (Scratch('/work'),) if sys.argv[2] == 'session' else ()
    spec = SandboxSpec(mounts=mounts, limits=Limits(wall_seconds=60))
    say = lambda name, data: print('started', flush=True)
    script = '(setsid sleep %s &); echo up; sleep %s' % (sys.argv[3], sys.argv[3])
    await run_once(make_sandbox(sys.argv[1]), spec, Command(('/bin/sh', '-c', script), on_output=say))
anyio.run(main)
"""


@pytest.mark.parametrize("kind", ["fresh", "session"])
def test_killed_engine_takes_its_sandboxes_along(box: Box, kind: str) -> None:
    marker = f"49.{time.time_ns()}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", ENGINE, box.sandbox.name, kind, marker]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"started\n"
        while len(processes_with(f"sleep\0{marker}")) < 2:
            time.sleep(0.01)
        assert bool(_groups(str(engine.pid))) == (find_controllers() is not None)
        engine.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 90
    while processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_with(marker) == []
    clean_leftovers()
    while _groups(str(engine.pid)) and time.monotonic() < deadline:  # an engine beside us may be at it already
        time.sleep(0.02)
    assert _groups(str(engine.pid)) == set()


def test_engine_killed_at_the_gate_runs_nothing(bubblewrap: Box) -> None:
    """Without us the gate opens onto an empty filter, which the kernel refuses."""
    program = (
        "import anyio, os, signal\n"
        "from securebench.sandboxes._bubblewrap import gate as _gate\n"
        "from securebench.sandboxes.select import make_sandbox\n"
        "from securebench.sandboxes.base import *\n"
        "box = make_sandbox('bubblewrap')\n"
        "async def main():\n"
        "    await box.probe()\n"
        "    _gate.Held.release = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"    await run_once(box, SandboxSpec(), Command(('/bin/sleep', '50.{os.getpid()}')))\n"
        "anyio.run(main)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    engine = subprocess.run([sys.executable, "-c", program], env=env, check=False, timeout=300)
    assert engine.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 90
    while processes_with(f"50.{os.getpid()}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_with(f"50.{os.getpid()}") == []
    clean_leftovers()


@pytest.mark.parametrize("delay", [0.002, 0.004, 0.006, 0.008, 0.012])
def test_engine_killed_while_bubblewrap_sets_up_leaves_nothing_after_cleaning(bubblewrap: Box, delay: float) -> None:
    """In that window bubblewrap's child waits for bubblewrap, and nobody tells it that both are gone."""
    program = (
        "import anyio, os, signal, threading, time\n"
        "from securebench.sandboxes.select import make_sandbox\n"
        "from securebench.sandboxes.base import *\n"
        "box = make_sandbox('bubblewrap')\n"
        "async def main():\n"
        "    await box.probe()\n"
        f"    threading.Thread(target=lambda: (time.sleep({delay}), os.kill(os.getpid(), signal.SIGKILL))).start()\n"
        f"    await run_once(box, SandboxSpec(), Command(('/bin/sleep', '52.{os.getpid()}')))\n"
        "anyio.run(main)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    engine = subprocess.Popen([sys.executable, "-c", program], env=env)
    assert engine.wait(300) == -signal.SIGKILL
    time.sleep(0.1)
    anyio.run(bubblewrap.sandbox.clean)  # type: ignore[attr-defined]
    deadline = time.monotonic() + 90
    while processes_with(f"52.{os.getpid()}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_with(f"52.{os.getpid()}") == []
    while _groups(str(engine.pid)) and time.monotonic() < deadline:  # an engine beside us may be at it already
        time.sleep(0.02)
    assert _groups(str(engine.pid)) == set()


def test_stale_directory_is_found_and_removed_and_a_live_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where no engine beside us cleans up
    with _leftovers.staging_directory() as live:
        stale = tmp_path / "securebench-1-1-conformance"
        stale.mkdir()
        assert str(stale) in _leftovers.clean_directories()
        assert live.exists()
        assert not stale.exists()


def test_failure_of_bubblewrap_is_a_sandbox_error_with_its_words(
    bubblewrap: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    from securebench.sandboxes._bubblewrap import direct as _direct

    before = state()
    monkeypatch.setattr(_direct, "namespace_args", lambda **_: ["--ro-bind", "/no/such/source", "/x"])
    with pytest.raises(SandboxError, match="no/such/source"):
        bubblewrap.sh("true")
    assert left_since(before) == {}


def _pretend(bubblewrap: Box, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program in bubblewrap's place."""
    host, capabilities = bubblewrap.sandbox._probed  # type: ignore[attr-defined]
    monkeypatch.setattr(bubblewrap.sandbox, "_probed", (replace(host, bwrap=program), capabilities))


@SPECS
def test_bubblewrap_that_cannot_be_started_is_a_sandbox_error(
    bubblewrap: Box, monkeypatch: pytest.MonkeyPatch, mounts: tuple[Scratch, ...]
) -> None:
    bubblewrap.sh("true", mounts=(Scratch("/work"),))
    before = state()
    _pretend(bubblewrap, "/no/such/bwrap", monkeypatch)
    with pytest.raises(SandboxError, match="no/such/bwrap"):
        bubblewrap.sh("true", mounts=mounts)
    assert left_since(before) == {}


def test_bubblewrap_that_hangs_is_a_sandbox_error(bubblewrap: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    bubblewrap.sh("true")
    before = state()
    monkeypatch.setattr(_gate, "_SETUP_SECONDS", 0.2)
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as script:
        script.write("#!/bin/sh\nexec sleep 60\n")
    os.chmod(script.name, 0o755)
    try:
        _pretend(bubblewrap, script.name, monkeypatch)
        with pytest.raises(SandboxError, match="ready"):
            bubblewrap.sh("true")
    finally:
        os.unlink(script.name)
    assert left_since(before) == {}


def test_bubblewrap_that_is_killed_is_a_sandbox_error_and_not_the_commands_failure(bubblewrap: Box) -> None:
    marker = f"53.{time.time_ns()}"

    async def kill() -> None:
        while "sleep" not in (found := {_name(pid): pid for pid in sorted(processes_with(marker), reverse=True)}):
            await anyio.sleep(0.01)
        os.kill(found["bwrap"], signal.SIGKILL)  # of two, the one that was there first

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            with pytest.raises(SandboxError, match="from outside"):
                await run_once(bubblewrap.sandbox, SandboxSpec(), Command(("/bin/sleep", marker)))

    anyio.run(main)
    assert processes_with(marker) == []


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def test_killed_spawner_is_replaced(bubblewrap: Box) -> None:
    from securebench.sandboxes._launch import client as _client

    bubblewrap.sh("true")
    first = _client._current[0]
    first._process.kill()
    first._process._popen.wait()
    assert text(bubblewrap.sh("echo again")) == "again"
    assert _client._current[0] is not first


def test_killed_launcher_is_a_sandbox_error_and_ends_the_session(bubblewrap: Box) -> None:
    marker = f"51.{time.time_ns()}"

    async def main() -> None:
        async with bubblewrap.sandbox.open(SandboxSpec(mounts=(Scratch("/work"),))) as session:

            async def kill() -> None:
                while not processes_with(marker):
                    await anyio.sleep(0.01)
                session._launcher._process.kill()  # type: ignore[attr-defined]

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill)
                with pytest.raises(SandboxError, match="launcher"):
                    await session.run(Command(("/bin/sleep", marker)))

    anyio.run(main)
    assert processes_with(marker) == []


def test_session_that_is_swept_when_it_ends_leaves_nothing_to_wait_for(bubblewrap: Box) -> None:
    async def main() -> None:
        for moment in range(20):
            async with bubblewrap.sandbox.open(SandboxSpec(mounts=(Scratch("/work"),))) as session:
                await session.run(Command(("/bin/true",)))
                session._launcher.sweep()  # type: ignore[attr-defined]
                await anyio.sleep(moment / 5000)

    before = _children()
    anyio.run(main)
    assert _children() == before


def test_probe_is_quick_and_cached(bubblewrap: Box) -> None:
    from securebench.sandboxes.bubblewrap import BubblewrapSandbox

    async def took(sandbox: BubblewrapSandbox) -> float:
        began = time.monotonic()
        assert (await sandbox.probe()).usable
        return time.monotonic() - began

    async def main() -> list[tuple[float, float]]:
        return [(await took(fresh), await took(fresh)) for fresh in (BubblewrapSandbox() for _ in range(5))]

    first, second = map(min, zip(*anyio.run(main), strict=True))  # of several, as the suite shares the machine
    assert first < 3  # 0.1 s on an idle one
    assert second < 0.01


def test_engines_that_clean_up_at_the_same_time_do_not_trip_over_each_other(bubblewrap: Box) -> None:
    """Each finds what the others are removing."""
    controllers = find_controllers()
    if controllers is None:
        pytest.skip("no control groups can be made here")
    program = (
        "import anyio, sys\n"
        "from securebench.sandboxes.select import make_sandbox\n"
        "sys.stdin.readline()\n"
        "anyio.run(make_sandbox('bubblewrap').clean)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    engines = [
        subprocess.Popen([sys.executable, "-c", program], env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    time.sleep(1)
    parents = set(controllers.parents.values())
    for number in range(200):
        for parent in parents:
            (parent / f"securebench-1-1-{number}").mkdir(exist_ok=True)
        (Path(tempfile.gettempdir()) / f"securebench-1-1-{number}").mkdir(exist_ok=True)
    ends = []
    for engine in engines:
        assert engine.stdin is not None
        engine.stdin.write(b"\n")
        engine.stdin.flush()
    for engine in engines:
        _, err = engine.communicate(timeout=300)
        ends.append((engine.returncode, err.decode()[-500:]))
    assert ends == [(0, "")] * 4
    assert [path for parent in parents for path in parent.glob("securebench-1-1-*")] == []
