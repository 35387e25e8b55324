"""Containers prepared ahead: what waits has begun, is filled when it is handed out, and never outlives anybody."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import text
from tests.docker.engine import ROOT, Imaged, containers_of, docker, own_containers, said
from tests.docker.test_docker_lifecycle import unchanged  # noqa: F401 — a fixture is used by name

from securebench.errors import SandboxError
from securebench.sandboxes._docker.session import DockerSession
from securebench.sandboxes.ahead import PreparedAhead, prepared_ahead
from securebench.sandboxes.base import Command, Limits, SandboxResult, SandboxSpec, Scratch
from securebench.sandboxes.docker import DockerSandbox

pytestmark = pytest.mark.usefixtures("unchanged")

SPEC = SandboxSpec(root=ROOT, limits=Limits(wall_seconds=30))
WORK = SandboxSpec(root=ROOT, mounts=(Scratch("/work"),), cwd="/work", limits=Limits(wall_seconds=30))
ECHO = "import sys\nprint('up', flush=True)\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)"


def _waits(program: str = ECHO) -> Command:
    return Command(("/usr/bin/python3", "-I", "-S", "-c", program), waits=True)


def within(sandbox: DockerSandbox, body: Callable[[PreparedAhead], Awaitable[None]]) -> None:
    async def main() -> None:
        async with prepared_ahead(sandbox) as ahead:
            await body(ahead)

    anyio.run(main)


async def _talk(ahead: PreparedAhead, command: Command, word: bytes = b"abc") -> tuple[bytes, SandboxResult]:
    """What the program says to one line and the end of input."""
    ours, theirs = socket.socketpair()
    results: list[SandboxResult] = []

    async def live() -> None:
        async with ahead.open(SPEC) as session:
            live = Command(command.argv, channels={0: theirs, 1: theirs}, waits=command.waits)
            results.append(await session.run(live))

    with ours:
        ours.sendall(word + b"\n")
        ours.shutdown(socket.SHUT_WR)
        ours.setblocking(False)
        said_ = b""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live)
            while True:
                await anyio.wait_readable(ours)
                if not (piece := ours.recv(65536)):
                    break
                said_ += piece
    return said_, results[0]


def test_program_that_waits_is_running_before_anybody_asks(sandbox: Imaged) -> None:
    async def body(ahead: PreparedAhead) -> None:
        await ahead.prepare(SPEC, _waits())
        (name,) = own_containers()
        assert said("inspect", "--format={{.State.Running}}", name) == "true"
        await anyio.sleep(8)
        answer, result = await _talk(ahead, _waits())
        assert answer == b"up\ncba\n"
        assert result.ok
        assert result.usage.wall_seconds < 8, "the time it waited is not its own"
        assert ahead.counts.hits == 1
        assert (await _talk(ahead, _waits()))[0] == b"up\ncba\n", "and so is the next one"
        assert ahead.counts.hits == 2

    within(sandbox.real, body)


def test_two_programs_of_one_spec_are_told_apart(sandbox: Imaged) -> None:
    other = _waits(ECHO.replace("[::-1]", ".upper()"))

    async def body(ahead: PreparedAhead) -> None:
        await ahead.prepare(SPEC, _waits())
        await ahead.prepare(SPEC, other)
        assert (await _talk(ahead, other))[0] == b"up\nABC\n"
        assert (await _talk(ahead, _waits()))[0] == b"up\ncba\n"
        assert (ahead.counts.hits, ahead.counts.misses) == (2, 0)

    within(sandbox.real, body)


def test_another_command_than_the_begun_one_runs_as_if_nothing_had_begun(sandbox: Imaged) -> None:
    async def main() -> list[str]:
        async with sandbox.real.open(SPEC) as session:
            assert isinstance(session, DockerSession)
            await session.begin(_waits())
            return text(await session.run(Command(("/bin/sh", "-c", "ps ax -o args | grep -c [p]ython; true")))).split()

    assert anyio.run(main) in (["0"], [])


def test_time_runs_out_from_the_moment_it_is_used(sandbox: Imaged) -> None:
    async def main() -> tuple[SandboxResult, float]:
        ours, theirs = socket.socketpair()
        async with sandbox.real.open(SPEC) as session:
            assert isinstance(session, DockerSession)
            await session.begin(_waits())
            await anyio.sleep(4)
            began = time.monotonic()
            command = Command(_waits().argv, channels={0: theirs, 1: theirs}, waits=True, wall_seconds=1.0)
            with ours:
                return await session.run(command), time.monotonic() - began

    result, seconds = anyio.run(main)
    assert result.timed_out
    assert 0.9 < seconds < 30


def test_program_that_does_not_wait_is_never_handed_out(sandbox: Imaged) -> None:
    async def body(ahead: PreparedAhead) -> None:
        with suppress(SandboxError):  # it may have ended before it was seen to run
            await ahead.prepare(SPEC, _waits("print('over')"))
        await anyio.sleep(0.5)
        assert (await _talk(ahead, _waits("print('over')")))[0] == b"over\n"
        assert (ahead.counts.hits, ahead.counts.misses, ahead.counts.spoilt) == (0, 1, 1)

    within(sandbox.real, body)


def test_scratch_is_filled_when_it_is_handed_out(sandbox: Imaged, tmp_path: Path) -> None:
    async def body(ahead: PreparedAhead) -> None:
        await ahead.prepare(WORK)
        for number in (1, 2):
            (seed := tmp_path / str(number)).mkdir()
            (seed / f"file{number}").write_text("text")
            spec = SandboxSpec(root=ROOT, mounts=(Scratch("/work", seed=seed),), cwd="/work", limits=WORK.limits)
            async with ahead.open(spec) as session:
                found = text(await session.run(Command(("/bin/sh", "-c", "ls; cat *; stat -c %U *"))))
                assert found.split() == [f"file{number}", "textnobody"]
                await session.stop()
                assert os.listdir(session.scratch("/work")) == [f"file{number}"]
            assert ahead.counts.hits == number

    within(sandbox.real, body)


def test_seed_that_does_not_fit_is_said_as_when_it_is_opened(sandbox: Imaged, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(4 << 20))
    small = SandboxSpec(root=ROOT, mounts=(Scratch("/work", size=1 << 20, seed=tmp_path),))

    async def body(ahead: PreparedAhead) -> None:
        await ahead.prepare(small)
        with pytest.raises(SandboxError, match="No space left"):
            async with ahead.open(small):
                raise AssertionError("opened")

    within(sandbox.real, body)


POISONS = {
    "killed": lambda name: docker("kill", name),
    "paused": lambda name: docker("pause", name),
    "started again": lambda name: docker("restart", "--time=0", name),
    "removed": lambda name: docker("rm", "--force", name),
}


async def _trusting(session: DockerSession) -> bool:
    return True


@pytest.mark.parametrize("spec", [SPEC, WORK], ids=["begun", "scratch"])
@pytest.mark.parametrize("poison", POISONS)
def test_poisoned_while_it_waited_it_is_not_handed_out(
    sandbox: Imaged, poison: str, spec: SandboxSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def once(ahead: PreparedAhead) -> None:
        await ahead.prepare(spec, _waits() if spec is SPEC else None)
        for name in own_containers():
            assert POISONS[poison](name).returncode == 0
        if spec is SPEC:
            assert (await _talk(ahead, _waits()))[0] == b"up\ncba\n"
        else:
            async with ahead.open(spec) as session:
                await session.run(Command(("/bin/touch", "/work/kept")))
                await session.stop()
                assert os.listdir(session.scratch("/work")) == ["kept"]

    async def careful(ahead: PreparedAhead) -> None:
        await once(ahead)
        assert (ahead.counts.hits, ahead.counts.misses, ahead.counts.spoilt) == (0, 1, 1)

    async def careless(ahead: PreparedAhead) -> None:
        with anyio.fail_after(5):
            await once(ahead)

    within(sandbox.real, careful)
    monkeypatch.setattr(DockerSession, "intact", _trusting)
    # Positive control: handed out unchecked, what was poisoned fails whoever gets it.
    with pytest.raises((SandboxError, TimeoutError, BaseExceptionGroup, AssertionError)):
        within(sandbox.real, careless)


ENGINE = """
import sys
import anyio
from securebench.sandboxes._docker import owner as _docker_owner
from securebench.sandboxes.ahead import prepared_ahead
from securebench.sandboxes.base import *
from securebench.sandboxes.docker import DockerSandbox

if sys.argv[1] == "off":
    _docker_owner._SWITCH = "read -r _"

async def main():
    async with prepared_ahead(DockerSandbox()) as ahead:
        root = ImageRoot("securebench-base:test")
        await ahead.prepare(SandboxSpec(root=root), Command(("/bin/cat",), waits=True))
        await ahead.prepare(SandboxSpec(root=root, mounts=(Scratch("/work"),)))
        print("waiting", flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""


@pytest.mark.parametrize("switch", ["on", "off"])
def test_killed_engine_leaves_nothing_that_waits(sandbox: Imaged, switch: str) -> None:
    """Not even where the dead-man's switch does not work: then `clean` finds them."""
    engine = _killed_engine(switch)
    if switch == "off":
        for _ in range(4):  # another test's engine may begin meanwhile, and clean up after ours
            time.sleep(1)
            if len(containers_of(engine)) == 2:
                break
            engine = _killed_engine(switch)
        assert len(containers_of(engine)) == 2, "positive control: they live on"
        anyio.run(sandbox.real.clean)
    deadline = time.monotonic() + 90
    while containers_of(engine) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert containers_of(engine) == []


def _killed_engine(switch: str) -> int:
    """The process id of one that had two containers waiting."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", ENGINE, switch]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, start_new_session=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"waiting\n"
        assert len(containers_of(engine.pid)) == 2
        os.killpg(engine.pid, signal.SIGKILL)
    return engine.pid
