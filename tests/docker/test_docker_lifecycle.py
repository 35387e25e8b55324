"""Nothing remains: after success, failure, cancellation, many at once, or the engine's own death."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import processes_with, text, until_running
from tests.docker.engine import Imaged, containers_of, docker, existing_volumes, own_containers, volumes_of

from securebench._leftovers import clean_directories
from securebench.errors import SandboxError
from securebench.sandboxes._docker.session import DockerSession
from securebench.sandboxes.base import Command, Limits, SandboxResult, SandboxSpec, Scratch, run_once

KINDS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["fresh", "session"])


def _groups(pid: int) -> list[str]:
    """Control groups made by one process for its containers, in every hierarchy."""
    names = (f"{place}/securebench-{pid}-*-*-*" for place in ("*", "*/*", "*/*/*"))
    return [group for name in names for group in glob.glob(name, root_dir="/sys/fs/cgroup")]


def _ours() -> dict[str, object]:
    return {
        "groups": _groups(os.getpid()),
        "containers": own_containers(),
        "directories": list(Path(tempfile.gettempdir()).glob(f"securebench-{os.getpid()}-*")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "switches": processes_with(f"org.securebench.session=securebench-{os.getpid()}-"),
    }


@pytest.fixture
def unchanged(sandbox: Imaged) -> Iterator[None]:
    """What this process owns is the same afterwards."""
    anyio.run(run_once, sandbox, SandboxSpec(), Command(("true",)))
    before = _ours()
    assert before["containers"] == []
    yield
    assert _ours() == before


def _spec(mounts: tuple[Scratch, ...], **limits: float) -> SandboxSpec:
    return SandboxSpec(mounts=mounts, limits=Limits(**{"wall_seconds": 30, **limits}))  # type: ignore[arg-type]


@KINDS
@pytest.mark.parametrize(
    "script", ["true", "exit 3", "kill -9 $$", "sleep 30"], ids=["ok", "exit", "signal", "timeout"]
)
@pytest.mark.usefixtures("unchanged")
def test_nothing_remains_after_any_end(sandbox: Imaged, mounts: tuple[Scratch, ...], script: str) -> None:
    anyio.run(run_once, sandbox, _spec(mounts, wall_seconds=1), Command(("/bin/sh", "-c", script)))


@pytest.mark.usefixtures("unchanged")
def test_volumes_go_with_the_session(sandbox: Imaged) -> None:
    async def main() -> list[str]:
        async with sandbox.open(_spec((Scratch("/work"), Scratch("/out")))) as session:
            await session.run(Command(("/bin/sh", "-c", "echo x > /work/a")))
            (holder,) = own_containers()
            held = volumes_of(holder)
            assert set(held) <= existing_volumes()
            return held

    volumes = anyio.run(main)
    assert len(volumes) == 3  # two scratch directories and /tmp
    assert not set(volumes) & existing_volumes()


@KINDS
@pytest.mark.parametrize("delay", [0.0, 0.03, 0.12, 0.3, 0.6, 1.5])
@pytest.mark.usefixtures("unchanged")
def test_cancellation_leaves_nothing(sandbox: Imaged, mounts: tuple[Scratch, ...], delay: float) -> None:
    marker = f"62.{time.time_ns()}"

    async def main() -> None:
        with anyio.move_on_after(delay):
            script = f"(setsid sleep {marker} &); sleep {marker}"
            await run_once(sandbox, _spec(mounts), Command(("/bin/sh", "-c", script)))

    anyio.run(main)
    assert processes_with(marker) == []


@KINDS
@pytest.mark.usefixtures("unchanged")
def test_error_in_the_callers_callback_leaves_nothing(sandbox: Imaged, mounts: tuple[Scratch, ...]) -> None:
    def refuse(name: str, data: bytes) -> None:
        raise ValueError(name)

    with pytest.raises(ValueError, match="stdout"):
        anyio.run(run_once, sandbox, _spec(mounts), Command(("/bin/sh", "-c", "echo x; sleep 30"), on_output=refuse))


@pytest.mark.usefixtures("unchanged")
def test_many_at_once(sandbox: Imaged) -> None:
    results: dict[int, SandboxResult] = {}

    async def one(number: int) -> None:
        mounts = (Scratch("/work"),) if number % 2 else ()
        command = Command(("/bin/sh", "-c", f"echo {number}; ls -d /proc/[0-9]* | wc -l"))
        results[number] = await run_once(sandbox, _spec(mounts), command)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(one, number)

    anyio.run(main)
    assert {number: int(text(result).split()[0]) for number, result in results.items()} == {n: n for n in range(12)}
    assert {int(text(result).split()[1]) for result in results.values()} <= {3, 4}  # init, shell, ls, wc


@pytest.mark.usefixtures("unchanged")
def test_container_removed_behind_our_back_is_a_sandbox_error(sandbox: Imaged) -> None:
    async def main() -> None:
        async with sandbox.open(_spec(())) as session:

            def remove(*_: object) -> None:
                docker("rm", "--force", *own_containers())

            await session.run(Command(("/bin/sh", "-c", "echo up; sleep 30"), on_output=remove))

    with pytest.raises(SandboxError):
        anyio.run(main)


def test_holder_killed_behind_our_back_is_a_sandbox_error(sandbox: Imaged) -> None:
    async def main() -> None:
        async with sandbox.open(_spec((Scratch("/work"),))) as session:
            docker("kill", *own_containers())
            assert isinstance(session, DockerSession)
            await session.stop()

    with pytest.raises(SandboxError):
        anyio.run(main)
    assert own_containers() == []


ENGINE = """
import sys
import anyio
from securebench.sandboxes._docker import owner as _docker_owner
from securebench._leftovers import clean_directories
from securebench.sandboxes.base import *
from securebench.sandboxes.docker import DockerSandbox

kind, marker, switch = sys.argv[1:]
if switch == "off":
    _docker_owner._SWITCH = "read -r _"

async def main():
    mounts = (Scratch('/work'),) if kind == 'session' else ()
    spec = SandboxSpec(root=ImageRoot('securebench-base:test'), mounts=mounts, limits=Limits(wall_seconds=120))
    say = lambda name, data: print('started', flush=True)
    script = '(setsid sleep %s &); echo up; sleep %s' % (marker, marker)
    await run_once(DockerSandbox(), spec, Command(('/bin/sh', '-c', script), on_output=say))
anyio.run(main)
"""


def _engine(kind: str, marker: str, switch: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", ENGINE, kind, marker, switch]
    engine = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, start_new_session=True)
    assert engine.stdout is not None
    said = engine.stdout.readline()
    deadline = time.monotonic() + 90
    while len(processes_with(f"sleep\0{marker}")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    if said != b"started\n" or len(processes_with(f"sleep\0{marker}")) != 2:
        engine.kill()
        raise AssertionError(said)
    return engine


@pytest.mark.parametrize("kind,containers", [("fresh", 1), ("session", 2)])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_killed_engine_takes_its_containers_along(
    sandbox: Imaged, kind: str, containers: int, number: signal.Signals
) -> None:
    marker = f"63.{time.time_ns()}"
    with _engine(kind, marker, "on") as engine:
        before = containers_of(engine.pid)
        assert len(before) == containers
        volumes = {volume for name in before for volume in volumes_of(name)}
        os.killpg(engine.pid, number)
    deadline = time.monotonic() + 90
    left = _left(engine.pid, marker, volumes)
    while any(left) and time.monotonic() < deadline:
        time.sleep(0.1)
        left = _left(engine.pid, marker, volumes)
    assert not any(left), left


def _left(engine: int, marker: str, volumes: set[str]) -> tuple[object, ...]:
    """What is still there of an engine."""
    files = list(Path(tempfile.gettempdir()).glob(f"securebench-{engine}-*"))
    still = volumes & existing_volumes()
    return containers_of(engine), processes_with(f"sleep\0{marker}"), still, files, _groups(engine)


def test_without_the_switch_they_live_on_and_are_cleaned_up_later(sandbox: Imaged) -> None:
    """The positive control of the switch, and the only thing that `clean` has to do."""
    for _ in range(5):  # every run on this engine cleans up before it begins, and may be faster than we are
        with _engine("session", marker := f"64.{time.time_ns()}", "off") as engine:
            volumes = {volume for name in containers_of(engine.pid) for volume in volumes_of(name)}
            os.killpg(engine.pid, signal.SIGKILL)
        time.sleep(2)
        left = containers_of(engine.pid)
        running = len(until_running(marker, len(left)))
        removed, own = anyio.run(_clean_beside_a_session, sandbox)
        assert own.ok  # what has a living owner is left alone
        if set(left) <= set(removed) and len(left) == len(volumes) == running == 2:
            break
    else:
        pytest.fail(f"left {left}, {running} processes and {volumes}, removed {removed}")
    clean_directories()
    left, deadline = _left(engine.pid, marker, volumes), time.monotonic() + 60
    while any(left) and time.monotonic() < deadline:  # an engine beside us may be at it too
        time.sleep(0.1)
        left = _left(engine.pid, marker, volumes)
    assert not any(left), left


async def _clean_beside_a_session(sandbox: Imaged) -> tuple[list[str], SandboxResult]:
    """What was removed, and how the session fared meanwhile."""
    async with sandbox.open(_spec(())) as session:
        removed: list[str] = []
        running = anyio.Event()
        results: list[SandboxResult] = []

        async def agent() -> None:
            command = Command(("/bin/sh", "-c", "echo up; sleep 2"), on_output=lambda *_: running.set())
            results.append(await session.run(command))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent)
            await running.wait()
            removed += await sandbox.real.clean()
        return removed, results[0]
