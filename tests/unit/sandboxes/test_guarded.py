"""The guarded backend promises nothing, bounds what it runs, and ends all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from tests.conformance.sandbox.box import PYTHON, processes_with, text, until_running

from securebench.errors import ConfigError, SandboxError, SandboxUnavailable
from securebench.sandboxes import select
from securebench.sandboxes.base import (
    MIB,
    Bind,
    Command,
    DirectoryRoot,
    Guarantee,
    HostRoot,
    ImageRoot,
    Limits,
    SandboxResult,
    SandboxSpec,
    Scratch,
    Session,
    run_once,
)
from securebench.sandboxes.guarded import GuardedSandbox
from securebench.sandboxes.host import HostSandbox
from securebench.sandboxes.select import make_sandbox, select_sandbox

T = TypeVar("T")


def _spec(*mounts: Scratch, cwd: str = "/work", **limits: object) -> SandboxSpec:
    bounds = Limits(**{"wall_seconds": 30, **limits})  # type: ignore[arg-type]
    return SandboxSpec(mounts=mounts or (Scratch("/work"),), cwd=cwd, require=frozenset(), limits=bounds)


def _session(spec: SandboxSpec, body: Callable[[Session], Awaitable[T]]) -> T:
    async def main() -> T:
        async with GuardedSandbox().open(spec) as session:
            return await body(session)

    return anyio.run(main)


def _sh(script: str, spec: SandboxSpec | None = None, **command: object) -> SandboxResult:
    made = Command(("/bin/sh", "-c", script), **command)  # type: ignore[arg-type]
    return anyio.run(run_once, GuardedSandbox(), spec or _spec(), made)


def _shell(script: str) -> Command:
    return Command(("/bin/sh", "-c", script))


@pytest.mark.parametrize("guarantee", list(Guarantee))
def test_it_refuses_whoever_requires_anything(guarantee: Guarantee) -> None:
    with pytest.raises(SandboxUnavailable, match=f"cannot guarantee {guarantee}") as refused:
        _sh("true", SandboxSpec(require=frozenset({guarantee})))
    assert "bubblewrap" in refused.value.remedy


def test_it_advertises_nothing_and_results_claim_nothing() -> None:
    capabilities = anyio.run(GuardedSandbox().probe)
    assert capabilities.usable
    assert capabilities.guarantees == frozenset()
    assert "none" in next(finding.detail for finding in capabilities.findings if finding.name == "isolation")
    assert _sh("true").guarantees == frozenset()


def test_it_is_there_by_name_and_never_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_sandbox("guarded").name == "guarded"
    monkeypatch.setattr(select, "BACKENDS", {})
    with pytest.raises(SandboxUnavailable):
        anyio.run(select_sandbox, "auto", frozenset())
    assert anyio.run(select_sandbox, "guarded", frozenset()).sandbox.name == "guarded"
    with pytest.raises(SandboxUnavailable, match="cannot guarantee"):
        anyio.run(select_sandbox, "guarded", frozenset({Guarantee.FS}))


def test_it_has_no_root_or_mounts_of_its_own(tmp_path: Path) -> None:
    for spec in (
        SandboxSpec(root=DirectoryRoot(tmp_path), require=frozenset()),
        SandboxSpec(mounts=(Bind(tmp_path, "/data"),), require=frozenset()),
    ):
        with pytest.raises(ConfigError, match="of its own"):
            _sh("true", spec)
    sandbox = GuardedSandbox()
    assert [anyio.run(sandbox.offers, root) for root in (HostRoot(), ImageRoot("x"))] == [True, False]


def test_temporary_root_is_unique_private_exported_and_removed() -> None:
    script = 'echo "$AIBB_TMP"; stat -c %a "$AIBB_TMP"; pwd; [ "$HOME$TMPDIR" = "$AIBB_TMP$AIBB_TMP" ] && echo same; mkdir d; chmod 0 d'
    first, second = (text(_sh(script, _spec(cwd="/"))).split() for _ in range(2))
    assert first[0] != second[0]
    for root, mode, here, same in (first, second):
        assert (mode, here, same) == ("700", root, "same")
        assert not Path(root).parent.exists()


def test_environment_is_built_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECUREBENCH_TEST_SECRET", "leaked")
    spec = SandboxSpec(require=frozenset(), env={"A": "spec", "B": "spec"})
    seen = dict(line.split("=", 1) for line in text(_sh("env", spec, env={"B": "command"})).splitlines())
    assert set(seen) - {"A", "B", "_"} == {"PATH", "HOME", "LANG", "PWD", "TMPDIR", "AIBB_TMP"}
    assert (seen["A"], seen["B"]) == ("spec", "command")


def test_seed_arrives_with_modes_times_and_links_and_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o750)
    (tmp_path / "d" / "f").write_text("seeded")
    (tmp_path / "d" / "f").chmod(0o640)
    (tmp_path / "link").symlink_to("d/f")
    os.utime(tmp_path / "d" / "f", ns=(1, 1_234_567_890_000_000_000))

    async def body(session: Session) -> str:
        return text(await session.run(_shell("stat -c '%a %Y' d/f; readlink link; cat link; echo mine > d/f")))

    assert _session(_spec(Scratch("/work", seed=tmp_path)), body).split() == ["640", "1234567890", "d/f", "seeded"]
    assert (tmp_path / "d" / "f").read_text() == "seeded"


def test_commands_share_several_scratch_directories_and_they_are_harvested() -> None:
    async def body(session: Session) -> list[list[str]]:
        await session.run(_shell("echo one > a; mkdir deep"))
        assert text(await session.run(Command(("/bin/sh", "-c", "cat ../a"), cwd="/work/deep"))) == "one"
        await session.run(Command(("/bin/sh", "-c", "echo two > b"), cwd="/out"))
        await session.stop()
        return [sorted(os.listdir(session.scratch(name))) for name in ("/work", "/out")]

    assert _session(_spec(Scratch("/work"), Scratch("/out")), body) == [["a", "deep"], ["b"]]


BOMB = (
    "import os, time\nfor _ in range(60):\n if not os.fork(): time.sleep(60); os._exit(0)\ntime.sleep(60)\n'{marker}'"
)


def test_flood_of_processes_is_ended() -> None:
    marker = f"81.{time.time_ns()}"
    command = Command((PYTHON, "-c", BOMB.format(marker=marker)))
    result = anyio.run(run_once, GuardedSandbox(), _spec(pids=16), command)
    assert not result.ok
    assert processes_with(marker) == []


# Each generation leaves its parent, its group and its session behind before the next is made.
RUNAWAY = """
import os, time
for _ in range(6):
    if os.fork(): time.sleep(0.01); os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
while True:
    if os.fork() == 0: os.setsid(); os.fork(); time.sleep(60); os._exit(0)
    time.sleep(0.01)
'{marker}'
"""


def test_stop_finds_everybody_who_ran_away() -> None:
    marker = f"82.{time.time_ns()}"

    async def body(session: Session) -> int:
        await session.run(Command((PYTHON, "-c", RUNAWAY.replace("{marker}", marker))))
        while not (running := processes_with(marker)):
            await anyio.sleep(0.01)
        await session.stop()
        return len(running)

    assert _session(_spec(pids=500), body) > 0
    assert processes_with(marker) == []


def test_control_without_a_keeper_they_get_away() -> None:
    marker = f"87.{time.time_ns()}"
    try:
        anyio.run(
            run_once, HostSandbox(), _spec(), _shell(f"(setsid sleep {marker} </dev/null >/dev/null 2>&1 &); true")
        )
        assert len(until_running(marker)) == 1
    finally:
        for pid in processes_with(marker):
            os.kill(pid, signal.SIGKILL)


def test_daemon_lives_between_commands_and_orphans_are_reaped() -> None:
    marker = f"83.{time.time_ns()}"

    async def body(session: Session) -> tuple[list[int], list[int]]:
        await session.run(
            _shell(f"(setsid sleep {marker} </dev/null >/dev/null 2>&1 &); for i in 1 2 3; do (true &); done")
        )
        await session.run(_shell("true"))
        keeper = session.platform._launcher.pid  # type: ignore[attr-defined]
        with anyio.fail_after(30):  # until the daemon has become `sleep` and the others are gone
            while True:
                found = processes_with(f"sleep\0{marker}")
                children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
                if len(found) == len(children) == 1:
                    return found, [int(child) for child in children]
                await anyio.sleep(0.01)

    daemons, children = _session(_spec(), body)
    assert daemons == children
    assert processes_with(marker) == []


def test_memory_of_all_processes_together_is_watched() -> None:
    program = "import os, time\nfor _ in range(4):\n if not os.fork(): b = b'x' * (60 << 20); time.sleep(30); os._exit(0)\ntime.sleep(30)"
    result = anyio.run(run_once, GuardedSandbox(), _spec(memory=100 * MIB), Command((PYTHON, "-c", program)))
    assert result.oom


def test_file_size_is_bounded() -> None:
    result = _sh("head -c 3000000 /dev/zero > a; stat -c %s a", _spec(file_size=MIB))
    assert int(text(result)) == MIB


def test_limits_come_on_top_of_what_the_user_has_already() -> None:
    """The kernel counts an ordinary user's processes together; a busy user must still be able to run something."""
    assert text(_sh("(echo child)", _spec(pids=1))) == "child"


ENGINE = """
import anyio, sys
from securebench.sandboxes.host import HostSandbox
from securebench.sandboxes.select import make_sandbox
from securebench.sandboxes.base import *
async def main():
    spec = SandboxSpec(require=frozenset(), limits=Limits(wall_seconds=60))
    script = '(setsid sleep %s &); echo up; sleep %s' % (sys.argv[1], sys.argv[1])
    say = lambda name, data: print('started', flush=True)
    await run_once(make_sandbox('guarded'), spec, Command(('/bin/sh', '-c', script), on_output=say))
anyio.run(main)
"""


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place where no other engine of this host cleans up."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", place)
        yield Path(place)


def test_killed_engine_takes_everything_along(temporary: Path) -> None:
    marker = f"84.{time.time_ns()}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", ENGINE, marker], env=env, stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"started\n"
        while len(processes_with(f"sleep\0{marker}")) < 2:
            time.sleep(0.01)
        engine.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while processes_with(f"sleep\0{marker}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_with(f"sleep\0{marker}") == []
    assert any(f"securebench-{engine.pid}-" in path for path in anyio.run(GuardedSandbox().clean))


def test_killed_keeper_is_a_sandbox_error_and_takes_the_command_along() -> None:
    marker = f"85.{time.time_ns()}"

    async def body(session: Session) -> None:
        async def kill() -> None:
            while not processes_with(marker):
                await anyio.sleep(0.01)
            session.platform._launcher._process.kill()  # type: ignore[attr-defined]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            with pytest.raises(SandboxError, match="launcher"):
                await session.run(Command(("/bin/sleep", marker)))

    _session(_spec(), body)
    deadline = time.monotonic() + 30
    while processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_with(marker) == []


def test_stop_ends_a_running_command() -> None:
    marker = f"86.{time.time_ns()}"

    async def body(session: Session) -> None:
        async def stop() -> None:
            while not processes_with(marker):
                await anyio.sleep(0.01)
            await session.stop()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            with pytest.raises(SandboxError, match="stopped"):
                await session.run(Command(("/bin/sleep", marker)))

    _session(_spec(), body)
    assert processes_with(marker) == []
