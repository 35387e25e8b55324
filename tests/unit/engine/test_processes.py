"""The engine's processes: real ones, killed, cancelled and orphaned."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.crash.world import NOTHING, leftovers_soon
from tests.e2e.workbench import need_bubblewrap, question

from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.engine.admission import Memory
from securebench.engine.attempt import AttemptContext
from securebench.engine.court import open_court
from securebench.engine.executors import processes as module
from securebench.engine.executors.base import Done, Executor, Order
from securebench.engine.executors.local import LocalExecutor
from securebench.engine.executors.processes import open_processes
from securebench.engine.executors.setup import Setup
from securebench.engine.executors.wire import FAULT, RECORD, SETUP, Connection, Frame, encode_frame
from securebench.engine.interruption import Interruption
from securebench.errors import ConfigError, InfrastructureError, IntegrityError
from securebench.harnesses.samples import SamplesProducer
from securebench.progress import Event, ProgressEvent, silent
from securebench.records.record import Identity
from securebench.sandboxes.base import HostRoot, Sandbox
from securebench.sandboxes.bubblewrap import BubblewrapSandbox

SQUARE = {
    "id": "square",
    "family": "code_completion",
    "input": {"prompt": "def f(x):\n", "language": "python", "entry_point": "f"},
    "eval": {"tests": {"source": "cases", "cases": [{"args": [3], "expected": 9}]}},
}
ROWS = [question(1), SQUARE]
SEED = b"s" * 32
FOREVER = "    import time\n    time.sleep(300)\n    return 9\n"


class World:
    """A pack, and executors for it."""

    def __init__(self, directory: Path, sandbox: Sandbox | None = None) -> None:
        self.directory, self.sandbox = directory, sandbox
        (directory / "manifest.yaml").write_text("id: p\nversion: 1\n")
        (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        self.pack = load_benchmark_pack(directory / "manifest.yaml", directory / "tasks.jsonl")
        self.identity = Identity("r", self.pack.digest, "sha256:c", "samples", {"passed": True})
        self.events: list[ProgressEvent] = []

    def processes(self, number: int = 1, memory: int = 2**40) -> Any:
        setup = Setup.of(
            self.pack,
            self.identity,
            None,
            sandbox=self.sandbox,
            roots=[HostRoot()],
            candidates=self.directory / "candidates",
            seed=SEED,
            samples="sha256:file",
        )
        return open_processes(setup, self.pack.entries, number, Memory(memory), self.events.append)

    @asynccontextmanager
    async def local(self) -> AsyncIterator[Executor]:
        candidates = CandidateStore(self.directory / "candidates")
        async with open_court(self.sandbox, candidates, SEED) as court:
            context = AttemptContext(self.identity, SamplesProducer("sha256:file"), silent, candidates, court)
            yield LocalExecutor(context, compile_benchmark_pack(self.pack), Memory(2**40), 2, 2)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def rooms(tmp_path: Path) -> World:
    need_bubblewrap()
    return World(tmp_path, BubblewrapSandbox())


def order(text: str | None, row: int = 0, attempt: int = 1) -> Order:
    sample = None if text is None else json.dumps({"task_id": "t", "completion": text}).encode()
    return Order(row, attempt, sample=sample, line=attempt)


def carry_out(opened: Any, *orders: Order) -> list[Done | None]:
    async def main() -> list[Done | None]:
        done: list[Done | None] = [None] * len(orders)

        async def one(number: int, executor: Executor) -> None:
            done[number] = await executor.carry_out(orders[number], Interruption())

        async with opened as executor, anyio.create_task_group() as group:
            for number in range(len(orders)):
                group.start_soon(one, number, executor)
        return done

    return anyio.run(main)


def children(parent: int | None = None) -> list[int]:
    """The engine's processes of this process, or of another."""
    found = []
    for thread in Path(f"/proc/{parent or os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found += [int(pid) for pid in (thread / "children").read_text().split()]
    return [pid for pid in found if b"executors.child" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


async def soon(seen: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := seen()) and time.monotonic() < deadline:
        await anyio.sleep(0.02)
    assert value, "it never came"
    return value


def has_ended(pid: int) -> bool:
    """Also where nobody has asked yet how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def below(root: int) -> set[int]:
    """Everything that a process started, and what that started."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def sleepers(root: int | None = None) -> list[int]:
    """What sleeps below a process, which candidates do here and nothing else."""
    found = []
    for pid in below(root or os.getpid()):
        try:
            if "nanosleep" in Path(f"/proc/{pid}/wchan").read_text():
                found.append(pid)
        except OSError:
            continue
    return found


def plain(done: Done | None) -> dict[str, Any]:
    """A record without what no two attempts share: times, and what was measured."""
    assert done is not None
    record = json.loads(done.body + b"}")
    assert record == done.record
    for name in ("timings", "usage"):
        del record[name]
    for name in ("seconds", "bytes", "outcomes"):
        record["verifier_metadata"].pop(name, None)
    return record


def test_records_are_the_same_wherever_they_are_made(rooms: World) -> None:
    orders = [
        order("Answer: 42"),
        order("Answer: 41", attempt=2),
        order(None, attempt=3),
        order("    return x * x\n", row=1),
        order("    return 8\n", row=1, attempt=2),
        order("    import os\n    os._exit(0)\n", row=1, attempt=3),
        Order(0, 4, fault="the host failed", repeats=({"phase": "verify", "fault": "x", "waited_seconds": 0.0},)),
    ]
    here = [plain(done) for done in carry_out(rooms.local(), *orders)]
    there = [plain(done) for done in carry_out(rooms.processes(2), *orders)]
    assert here == there
    statuses = [record["verification_status"] for record in here]
    assert statuses == ["passed", "failed", "failed", "passed", "failed", "failed", "error"]
    assert [record["failure_reason"] for record in here][2] == "no_candidate"
    assert here[0]["producer_metadata"]["samples"] == "sha256:file"
    assert here[0]["audit"] == {"passed": True}


HOSTILE = {
    "deep": "-" * 60_000 + "1",
    "wide": "1" + "+1" * 30_000,
    "calls": "f" + "()" * 30_000,
    "brackets": "[" * 60_000,
    "conditions": "1 if 1 else " * 5_000 + "1",
    "comparisons": "1" + "<1" * 20_000,
    "lambdas": "lambda:" * 8_000 + "0",
    "many": "f=1;" * 15_000,
    "digits": "9" * 60_000,
    "nothing": "\0",
    "half a character": "\ud800",
    "a megabyte": "x" * (2**20 + 1),
}


def test_no_sample_takes_the_process_that_reads_it_down(rooms: World) -> None:
    async def main() -> tuple[dict[str, str], int]:
        verdicts = {}
        async with rooms.processes(1) as executor:
            for attempt, (name, text) in enumerate(HOSTILE.items(), 1):
                done = await executor.carry_out(order(f"    return {text}\n", 1, attempt), Interruption())
                assert done is not None
                verdicts[name] = done.record["verification_status"]
            return verdicts, executor.restarts

    assert anyio.run(main) == (dict.fromkeys(HOSTILE, "failed"), 0)


def test_killed_process_is_replaced_and_its_attempt_done_again(rooms: World) -> None:
    async def main() -> tuple[Done | None, int]:
        async with rooms.processes(1) as executor:

            async def kill() -> None:
                await soon(sleepers)
                os.kill(children()[0], signal.SIGKILL)

            async with anyio.create_task_group() as group:
                group.start_soon(kill)
                slow = "    import time\n    time.sleep(3)\n    return 9\n"
                done = await executor.carry_out(order(slow, row=1), Interruption())
            return done, executor.restarts

    done, restarts = anyio.run(main)
    assert done is not None
    assert (done.record["verification_status"], restarts) == ("passed", 1)
    fault = "a process of the engine ended by signal 9"
    assert done.record["repeats"] == [{"phase": "verify", "fault": fault, "waited_seconds": 0.0}]
    assert [event.event for event in rooms.events] == [Event.TASK_START]


def test_attempt_whose_process_dies_again_and_again_is_an_error_and_nobodys_verdict(
    rooms: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[module._Child] = []
    ask = module._Child.ask

    async def noted(child: module._Child, data: bytes) -> Frame:
        if Order.decode(data).fault is None:  # not the one that records what became of the others
            asked.append(child)
        return await ask(child, data)

    monkeypatch.setattr(module._Child, "ask", noted)

    async def main() -> Done | None:
        async with rooms.processes(1) as executor:

            async def kill() -> None:
                while True:
                    await anyio.sleep(0.1)
                    while asked:  # one that is starting still would not have had the attempt
                        asked.pop().process.kill()

            async with anyio.create_task_group() as group:
                group.start_soon(kill)
                done = await executor.carry_out(order(FOREVER, row=1), Interruption())
                group.cancel_scope.cancel()
            return done

    done = anyio.run(main)
    assert done is not None
    record = done.record
    assert (record["verification_status"], record["passed"], record["score"]) == ("error", None, None)
    assert record["failure_message"] == "a process of the engine ended by signal 9, 3 times"
    assert len(record["repeats"]) == module.REPEATS


@pytest.mark.parametrize(
    "said",
    [encode_frame(FAULT, 0, b"{}"), encode_frame(RECORD, 77), b"\xff" * 16],
    ids=["about no order", "about another order", "no frame"],
)
def test_process_that_answers_no_order_is_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: bytes
) -> None:
    monkeypatch.setattr(module, "_MODULE", "tests.unit.engine.odd_child")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "ODD").write_bytes(said)

    async def main() -> tuple[Done | None, int]:
        async with world.processes(1) as executor:
            with anyio.fail_after(60):
                return await executor.carry_out(order("Answer: 42"), Interruption()), executor.restarts

    done, restarts = anyio.run(main)
    assert done is not None
    assert (done.record["verification_status"], restarts) == ("passed", 1)


@pytest.mark.parametrize("what", ["send", "receive"])
def test_connection_that_is_closed_keeps_nobody_waiting(what: str) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        connection = Connection(ours)

        async def wait() -> None:
            if what == "receive":
                assert await connection.receive() is None
                return
            with pytest.raises(ConnectionError):
                await connection.send(SETUP, data=bytes(8 * 2**20))

        with theirs, anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.sleep(0.1)
                connection.close()

    anyio.run(main)


def test_cancelling_ends_the_work_and_frees_the_process(rooms: World) -> None:
    async def main() -> Done | None:
        async with rooms.processes(1) as executor:
            async with anyio.create_task_group() as group:
                group.start_soon(executor.carry_out, order(FOREVER, row=1), Interruption())
                await soon(sleepers)
                group.cancel_scope.cancel()
            await soon(lambda: not sleepers(), 20)  # before the time of a call is over
            return await executor.carry_out(order("Answer: 42"), Interruption())

    done = anyio.run(main)
    assert done is not None
    assert done.record["passed"] is True


def test_interruption_takes_those_back_that_wait(rooms: World) -> None:
    async def main() -> list[Done | None]:
        interruption, done = Interruption(), []
        async with rooms.processes(1) as executor, anyio.create_task_group() as group:

            async def one(text: str) -> None:
                done.append(await executor.carry_out(order(text, row=1), interruption))

            slow = "    import time\n    time.sleep(3)\n    return 9\n"
            group.start_soon(one, slow)
            await soon(lambda: executor.running)
            group.start_soon(one, slow)
            await anyio.sleep(0.05)
            interruption.ask()
        return done

    waiting, running = anyio.run(main)
    assert waiting is None
    assert running is not None
    assert running.record["passed"] is True  # what is being judged is finished


def test_memory_is_admitted_for_all_processes_together(rooms: World) -> None:
    async def main() -> list[int]:
        seen = []
        async with rooms.processes(2, memory=2**30) as executor:

            async def one(attempt: int) -> None:
                await executor.carry_out(order("    return 9\n", 1, attempt), Interruption())
                seen.append(executor.running)

            async with anyio.create_task_group() as group:
                for attempt in range(1, 5):
                    group.start_soon(one, attempt)
        return seen

    assert max(anyio.run(main)) == 0  # each may use 1 GiB, so none runs beside another


def test_processes_get_no_secret_by_environment_or_command_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    async def main() -> list[bytes]:
        async with world.processes(1):
            return [Path(f"/proc/{children()[0]}/{name}").read_bytes() for name in ("environ", "cmdline")]

    shown = b"".join(anyio.run(main))
    assert b"sk-very-secret" not in shown
    assert SEED.hex().encode() not in shown


def test_signals_for_everybody_are_the_engines_alone(world: World) -> None:
    async def main() -> int:
        async with world.processes(1) as executor:
            for number in (signal.SIGINT, signal.SIGTERM):
                os.kill(children()[0], number)
            await executor.carry_out(order("Answer: 42"), Interruption())
            return executor.restarts

    assert anyio.run(main) == 0


@pytest.mark.parametrize(("number", "cores"), [(1, [None]), (3, [None] * 3), (4, [2, 3, 6, 7]), (5, [None] * 5)])
def test_processes_are_bound_to_cores_only_where_they_use_all(
    number: int, cores: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 2, 3, 6})
    assert module._cores(number) == cores


def test_closing_leaves_no_process(world: World) -> None:
    async def main() -> list[int]:
        async with world.processes(2):
            await soon(lambda: len(children()) == 2)
            return children()

    pids = anyio.run(main)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_pack_that_changed_stops_everything(world: World) -> None:
    with (world.directory / "tasks.jsonl").open("a") as file:
        file.write(json.dumps(question(7)) + "\n")
    with pytest.raises(IntegrityError, match="the pack changed since the run began"):
        carry_out(world.processes(2), order("Answer: 42"))
    (world.directory / "tasks.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match=r"tasks.jsonl:1"):
        carry_out(world.processes(2), order("Answer: 42"))


def test_processes_that_cannot_start_are_told_with_their_last_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MODULE", "securebench.engine.executors.no_such_module")
    with pytest.raises(InfrastructureError, match=r"ended with status 1: .*No module named"):
        carry_out(world.processes(1), order("Answer: 42"))


ORPHANS = """
import sys, anyio
from pathlib import Path
from tests.unit.engine.test_processes import FOREVER, World, order
from securebench.engine.interruption import Interruption
from securebench.sandboxes.bubblewrap import BubblewrapSandbox

async def main():
    async with World(Path(sys.argv[1]), BubblewrapSandbox()).processes(2) as executor:
        async with anyio.create_task_group() as group:
            for attempt in (1, 2):
                group.start_soon(executor.carry_out, order(FOREVER, 1, attempt), Interruption())

anyio.run(main)
"""


def test_processes_end_with_an_engine_that_is_killed_and_leave_nothing(tmp_path: Path) -> None:
    need_bubblewrap()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o755)
    (tmp_path / "pack").mkdir()
    engine = subprocess.Popen(
        [sys.executable, "-c", ORPHANS, str(tmp_path / "pack")],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    try:
        anyio.run(soon, lambda: len(sleepers(engine.pid)) >= 2)
        pids, everything = [engine.pid, *children(engine.pid)], below(engine.pid)
    finally:
        engine.kill()
        engine.wait()
    assert len(pids) == 3
    assert len(everything) > 6  # processes, their spawners, and rooms
    anyio.run(soon, lambda: all(map(has_ended, everything)))
    assert leftovers_soon(pids, temporary) == NOTHING
