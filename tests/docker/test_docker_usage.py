"""What a container used is read from outside, exactly where a control group can be made for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import PYTHON
from tests.docker.engine import Imaged, said

from securebench._leftovers import owned_name
from securebench.sandboxes._docker import command as _docker_command
from securebench.sandboxes._docker import owner as _docker_owner
from securebench.sandboxes._docker.accounts import Ledger, clean_groups
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.session import Engine
from securebench.sandboxes._docker.state import State, inspect
from securebench.sandboxes.base import MIB, Command, Limits, Outcome, SandboxSpec, Usage, run_once
from securebench.sandboxes.docker import DockerSandbox

WORK = (
    "import os, time\n"
    "data = bytearray({mib} << 20)\n"
    "end = time.process_time() + {seconds}\n"
    "while time.process_time() < end: pass\n"
    "for _ in range({processes}): os.fork() or (time.sleep(20), os._exit(0))\n"
    "time.sleep({idle})"
)
SPEC = SandboxSpec(limits=Limits(wall_seconds=60))


def _used(sandbox: Imaged, mib: int = 1, seconds: float = 0, processes: int = 0, idle: float = 0) -> Usage:
    program = WORK.format(mib=mib, seconds=seconds, processes=processes, idle=idle)
    result = anyio.run(run_once, sandbox, SPEC, Command((PYTHON, "-c", program)))
    assert result.ok, result
    return result.usage


@pytest.fixture
def engine(sandbox: Imaged) -> Engine:
    found = anyio.run(sandbox.real._look).engine
    assert found is not None
    return found


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    if engine.ledger is None:
        pytest.skip(f"no control group of ours is possible here: driver {said('info', '--format={{.CgroupDriver}}')}")
    return engine.ledger


@pytest.mark.usefixtures("ledger")
def test_short_command_is_counted_to_its_end(sandbox: Imaged) -> None:
    little, much = _used(sandbox), _used(sandbox, mib=100, seconds=0.5)
    assert little.cpu_seconds is not None
    assert much.cpu_seconds is not None
    assert much.cpu_seconds - little.cpu_seconds > 0.4
    assert little.peak_memory is not None
    assert much.peak_memory is not None
    assert little.peak_memory < 60 * MIB < 100 * MIB < much.peak_memory


@pytest.mark.usefixtures("ledger")
def test_processes_are_counted_where_they_can_be_told_from_the_engines(sandbox: Imaged) -> None:
    assert _used(sandbox).peak_pids is None
    assert _used(sandbox, processes=40, idle=0.2).peak_pids in (None, 41)  # None where the kernel keeps no peak


def test_nothing_remains_of_the_groups(sandbox: Imaged, ledger: Ledger) -> None:
    def own() -> list[Path]:
        return [group for place in ledger.places for group in place.glob(f"{owned_name('')}*")]

    seen: list[Path] = []
    command = Command(("/bin/sh", "-c", "echo up; sleep 0.2"), on_output=lambda *_: seen.extend(own()))
    anyio.run(run_once, sandbox, SPEC, command)
    assert seen, "the control: there were some while it ran"
    assert own() == []


def test_where_no_group_can_be_made_what_was_seen_last_is_told(engine: Engine) -> None:
    async def main() -> Usage:
        other = DockerSandbox()
        other._probed = replace(await other._look(), engine=replace(engine, ledger=None))
        program = WORK.format(mib=60, seconds=1, processes=0, idle=3)
        return (await run_once(Imaged(other), SPEC, Command((PYTHON, "-c", program)))).usage

    usage = anyio.run(main)
    if usage.cpu_seconds is None:
        assert engine.ledger is None, "the groups can be seen here"
        return
    assert 0.9 < usage.cpu_seconds < 5
    assert usage.peak_memory is None or usage.peak_memory > 60 * MIB


def test_groups_of_dead_engines_are_removed(ledger: Ledger) -> None:
    place = next(iter(ledger.counting.values()))
    stale, live = place / "securebench-1-1-conformance", place / owned_name("conformance")
    live.mkdir()
    try:
        for _ in range(20):  # an engine beside us may be faster
            stale.mkdir(exist_ok=True)
            if stale.name in (cleaned := clean_groups()):
                break
        assert stale.name in cleaned
        assert not stale.exists()
        assert live.exists()
    finally:
        live.rmdir()


@pytest.fixture
def group(ledger: Ledger) -> Iterator[tuple[_docker_owner.Owner, Path]]:
    """An owner and a group of its, as a killed engine leaves it."""
    owner = _docker_owner.Owner.new()
    made = next(iter(ledger.counting.values())) / owner.container("1")
    made.mkdir()
    yield owner, made
    if made.exists():
        made.rmdir()


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_the_switch_of_a_dead_engine_removes_them(
    engine: Engine, ledger: Ledger, group: tuple[_docker_owner.Owner, Path], tmp_path: Path, told: bool
) -> None:
    owner, made = group

    async def main() -> None:
        switch = _docker_owner.DeadMan(engine.client, owner, tmp_path / "none", ledger.places if told else ())
        switch.forsake()
        await switch.disarm()  # which sets it off
        with anyio.move_on_after(60 if told else 2):
            while made.exists():
                await anyio.sleep(0.05)

    anyio.run(main)
    assert made.exists() != told
    for process in _docker_owner.DeadMan._forsaken:
        process.close_now()
    _docker_owner.DeadMan._forsaken.clear()


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("bytearray(b'x' * (200 << 20))", Outcome.OUT_OF_MEMORY),
        ("import os; os.kill(os.getpid(), 9)", Outcome.SIGNALLED),
    ],
)
def test_memory_used_up_is_seen_where_the_engine_missed_it(
    sandbox: Imaged, monkeypatch: pytest.MonkeyPatch, program: str, outcome: Outcome
) -> None:
    """The kernel's notice is lost with the container's group; seen once in a dozen on a busy host."""

    async def deaf(client: Client, name: str) -> State:
        return replace(await inspect(client, name), oom_killed=False)

    monkeypatch.setattr(_docker_command, "inspect", deaf)
    spec = SandboxSpec(limits=Limits(wall_seconds=60, memory=64 * MIB))
    assert anyio.run(run_once, sandbox, spec, Command((PYTHON, "-c", program))).outcome is outcome
