"""Nodes that fail, fill up, stand still or never get ready: what they cost a run, and what is said about them."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cluster.liars import Liar
from tests.cluster.test_hostile_candidates import PATCH, customized
from tests.cluster.test_waiting import NEED, cluster
from tests.cluster.world import World, eventually
from tests.e2e.workbench import need_bubblewrap
from tests.packs import REMOVED, changed, row
from tests.unit.workspaces.git_cases import write_files

from securebench.cluster import frames, members, node
from securebench.cluster.members import Cluster, Faulty
from securebench.cluster.setup import NodeSetup
from securebench.engine.executors.wire import Connection, Frame, encode_fault, encode_frame
from securebench.errors import InfrastructureError, IntegrityError, SandboxUnavailable
from securebench.preparation import Prepared
from securebench.records.keys import signing_key_from

TEXT = row("short_answer")
CODE = changed(row("code_completion"), "eval.canonical_solution", REMOVED)
RIGHT = "printf 'def add(a, b): return a + b'"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    need_bubblewrap()
    made = World(tmp_path / "w")
    yield made
    made.end()


def texts(number: int) -> list[dict[str, Any]]:
    return [changed(TEXT, "id", f"s{count}") for count in range(number)]


# -- nodes that fail at everything ----------------------------------------------------------------------------------


class Hole(Liar):
    """A node whose disk is full: it fails at once, and so is always the one with most room."""

    async def __call__(self, head: Connection) -> None:
        await head.receive()
        await head.send(frames.READY, 0, self._report().encode())
        while (frame := await head.receive()) is not None:
            if frame.kind in (frames.PRODUCE, frames.VERIFY):
                fault = InfrastructureError("No space left on device")
                await head.send(frames.FAULT, frame.number, encode_fault(fault))


def test_a_node_that_fails_at_everything_has_a_rest_and_costs_no_attempt(world: World) -> None:
    world.add("good")
    world.add("hole", cpus=4.0, serve=Hole())
    records = world.run(texts(24), "sleep 0.1; printf 42")
    assert {record["verification_status"] for record in records} <= {"passed", "failed"}
    assert sum(len(record["repeats"]) for record in records) < 12
    assert isinstance(world.nodes["hole"].ended, Faulty)
    assert any("node hole gets no more work for now: it failed at 5 attempts" in text for text in world.notices)


def test_one_attempt_does_not_cost_a_node_its_place_however_often_it_fails(tmp_path: Path) -> None:
    async def run() -> None:
        nodes = cluster(tmp_path, 1)
        (member,) = nodes.members.values()
        for _ in range(20):
            nodes.failed_at(member, ("verify", "t", 1))
        assert member.resting is None
        for number in range(4):
            nodes.failed_at(member, ("verify", "t", 2 + number))
        assert isinstance(member.resting, Faulty)

    anyio.run(run)


def test_what_failed_on_a_node_is_repeated_on_another_if_there_is_one(tmp_path: Path) -> None:
    async def run() -> None:
        nodes = cluster(tmp_path, 2)
        for name in ("node-0", "node-1"):
            nodes.failed_at(nodes.members[name], "a")
            async with nodes.placed(NEED, "a") as member:
                assert member.name != name
        nodes._leave(nodes.members["node-0"])
        nodes.failed_at(nodes.members["node-1"], "a")
        async with nodes.placed(NEED, "a") as member:
            assert member.name == "node-1", "rather there than nowhere"

    anyio.run(run)


def test_who_waits_for_another_node_goes_back_when_that_has_a_rest(tmp_path: Path) -> None:
    async def run() -> None:
        nodes = cluster(tmp_path, 2)
        first, other = nodes.members.values()
        nodes.failed_at(first, "a")
        placed: list[str] = []

        async def again() -> None:
            async with nodes.placed(NEED, "a") as member:
                placed.append(member.name)

        async with anyio.create_task_group() as group:
            nodes.placement.place(NEED)
            nodes.placement.place(NEED)
            nodes.placement.release(first.name, NEED)
            group.start_soon(again)
            await anyio.wait_all_tasks_blocked()
            assert placed == [], "there is another one, which is busy"
            other.carries = 1
            nodes.rest(other, "tired")
        assert placed == [first.name]

    anyio.run(run)


# -- nodes that are full --------------------------------------------------------------------------------------------


def test_a_node_that_keeps_too_much_begins_anew_and_no_attempt_notices(world: World) -> None:
    write_files(world.directory / "assets" / "repo", {"src/app.py": "broken\n"})
    for number in range(8):
        world.add(f"n{number}", after=f"n{number - 1}" if number else None)
    rows = [{**PATCH, "id": f"p{number}"} for number in range(3)]
    records = world.run(rows, "echo fixed > src/app.py", executor={"cache": 1, "patience_seconds": 60})
    assert [record["passed"] for record in records] == [True] * 3
    assert [record["repeats"] for record in records] == [[]] * 3
    assert world.nodes["n0"].ended == "it kept as much as it may"


# -- nodes that stand still -----------------------------------------------------------------------------------------


def test_a_node_that_stands_still_is_lost_and_its_work_done_elsewhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "_PING_SECONDS", 1.0)
    stopped = world.add("a", role="verify", kill=lambda frame: frame.kind == frames.VERIFY and stop())

    def stop() -> bool:
        for process in stopped.processes:
            os.kill(process.pid, signal.SIGSTOP)
        stopped.kill = None
        return False

    world.add("p", role="produce")
    world.add("b", role="verify", after="a")
    threading.Thread(target=_wake_when_lost, args=(world,), daemon=True).start()
    began = time.monotonic()
    (record,) = world.run([CODE], RIGHT, executor={"patience_seconds": 60})
    assert record["passed"]
    assert record["nodes"]["verify"]["node"]["name"] == "b"
    assert "node a was lost while it verified" in record["repeats"][0]["fault"]
    assert stopped.ended == "it has said nothing for 6 s"
    assert time.monotonic() - began < 60


def _wake_when_lost(world: World) -> None:
    """So that it can end and nothing is left of it."""
    if eventually(lambda: world.nodes["a"].ended is not None, 60):
        for process in world.nodes["a"].processes:
            os.kill(process.pid, signal.SIGCONT)


# -- nodes that do not get ready ------------------------------------------------------------------------------------


class Dead:
    """A link to a process that ended, and knows why."""

    def __init__(self, sends: bool) -> None:
        self.lost = "its process ended: ImportError: no module named securebench"
        self._sends = sends

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        if not self._sends:
            raise ConnectionError

    async def receive(self) -> None:
        return None


@pytest.mark.parametrize("sends", [True, False])
def test_why_a_node_was_never_ready_is_said(tmp_path: Path, world: World, sends: bool) -> None:
    setup = NodeSetup.of(world.config([CODE], RIGHT), (None,), role="both", unsafe=False)
    nodes = Cluster(lambda role: setup, cluster(tmp_path, 0).contents, notice=print, patience=1)
    why = anyio.run(nodes.attend, "n", "both", 1.0, Dead(sends))
    assert why == "it ended before it was ready: its process ended: ImportError: no module named securebench"


def test_a_node_whose_head_is_gone_does_not_finish_getting_ready(world: World) -> None:
    hangs = "import anyio, securebench.preparation as p\nasync def f(*a, **k): await anyio.sleep(900)\np.prepare_sandbox = f"
    made = world.add("n", **customized(world, hangs))
    setup = NodeSetup.of(world.config([CODE], RIGHT), (None,), role="both", unsafe=False)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = made._start(theirs)
        made.processes.append(process)
        theirs.close()
        ours.sendall(encode_frame(frames.SETUP, 0, setup.encode()))
        time.sleep(2)
        assert process.poll() is None
    assert process.wait(60) == 0
    assert world.leftovers() == []


def test_a_node_that_did_not_look_at_its_walls_is_refused(world: World) -> None:
    class Blind(Liar):
        def _report(self) -> Any:
            return super()._report().model_copy(update={"audit": None})

    world.add("blind", serve=Blind())
    config = world.config([CODE], RIGHT)
    ended: list[object] = []

    async def attend(unsafe: bool) -> None:
        setup = NodeSetup.of(config, (None,), role="both", unsafe=unsafe)
        contents = cluster(world.temporary / "c", 0).contents
        nodes = Cluster(lambda role: setup, contents, notice=print, patience=1)
        async with anyio.create_task_group() as group:
            with world.nodes["blind"].link(group) as link, anyio.move_on_after(1):
                try:
                    await nodes.attend("blind", "both", 1.0, link)
                except IntegrityError as error:
                    ended.append(str(error))
            ended.extend(nodes.members)
            group.cancel_scope.cancel()

    anyio.run(attend, False)
    assert ended == ["node blind has not looked at its walls"]


def test_images_that_work_one_by_one_are_prepared_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    async def prepare(section: Any, roots: Any, notice: Any, *, unsafe: bool) -> Prepared:
        asked.append([root.reference for root in roots])
        if any(root.reference in ("c", "d") for root in roots):
            raise SandboxUnavailable("image c is not here", "pull it")
        return Prepared(roots=tuple(roots))

    monkeypatch.setattr(node, "prepare_sandbox", prepare)

    class Setup:
        images, sandbox, unsafe = ("d", "a", "c", "b"), None, False

    made, why = anyio.run(node._prepare, Setup())  # type: ignore[arg-type]
    assert [root.reference for root in made.roots] == ["a", "b"]  # type: ignore[union-attr]
    assert why is not None
    assert "image c is not here" in why
    assert asked[-1] == ["a", "b"]


# -- what is said, and how soon -------------------------------------------------------------------------------------


def test_what_no_node_can_do_waits_once_and_is_said_at_the_start(world: World) -> None:
    world.add("p", role="produce")
    began = time.monotonic()
    (record,) = world.run([CODE], RIGHT, executor={"patience_seconds": 2})
    assert record["verification_status"] == "error"
    assert "no node can verify this" in record["failure_message"]
    assert record["repeats"] == []
    assert any(text.startswith("no node is there yet that may verify") for text in world.notices)
    assert not any("may produce" in text for text in world.notices)
    assert time.monotonic() - began < 60


def test_what_is_to_end_in_time_is_told_so_before_it_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[object] = []

    class Head:
        def __init__(self) -> None:
            self.frames = [Frame(frames.VERIFY, 1, b""), None]

        async def receive(self) -> Frame | None:
            await anyio.sleep(0.01)
            return self.frames.pop(0)

    async def work(self: Any, talk: Any, order: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            events.append("ended")
            talk.close()

    class Service:
        contents = None

    monkeypatch.setattr(signal, "alarm", events.append)
    monkeypatch.setattr(node._Attempts, "_carry_out", work)
    anyio.run(node._Attempts(Head(), Service()).serve)  # type: ignore[arg-type]
    assert events == [node._FAREWELL, "ended"]


def test_a_node_is_certified_under_the_name_it_has_now(tmp_path: Path) -> None:
    async def run() -> None:
        nodes = cluster(tmp_path, 2)
        nodes.enrol_with("run", signing_key_from(b"\3" * 32))
        one, two = nodes.members.values()
        assert one.report.key == two.report.key
        assert [nodes.node_of(member).name for member in (one, two)] == ["node-0", "node-1"]

    anyio.run(run)
