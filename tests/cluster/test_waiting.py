"""Attempts that wait for a node: whose turn it is, and that waiting costs the head nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from securebench.candidates.store import CandidateStore
from securebench.cluster import placement
from securebench.cluster.members import Cluster, Member
from securebench.cluster.placement import Need, Offer, Placement
from securebench.cluster.setup import Machine, NodeReport
from securebench.cluster.shipping import StoredContents

GB = 2**30
ROLES = frozenset({"produce", "verify"})
NEED = Need("verify", 1.0, GB)


class Silent:
    """A link nobody is behind."""

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None: ...

    async def receive(self) -> None:
        await anyio.sleep_forever()


def cluster(directory: Path, nodes: int, roles: tuple[str, ...] = ()) -> Cluster:
    contents = StoredContents(CandidateStore(directory))
    made = Cluster(pytest.fail, contents, notice=lambda _: None, patience=5, roles=roles)
    machine = Machine(cpus=1, memory=8 * GB, disk=99 * GB, kernel="k", architecture="a", python="3")
    report = NodeReport(
        key="ed25519:" + "0" * 64,
        machine=machine,
        backend="b",
        why_not=None,
        roots=(None,),
        images={},
        audit=None,
        tools={},
    )
    for number in range(nodes):
        made._join(Member(f"node-{number}", report, Silent()), "both", None)
    return made


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Need]:
    """Every look at whether a node has room for something."""
    seen: list[Need] = []
    real = placement._Node.has_room

    def has_room(node: Any, need: Need) -> bool:
        seen.append(need)
        return real(node, need)

    monkeypatch.setattr(placement._Node, "has_room", has_room)
    return seen


@pytest.mark.parametrize("kinds", [1, 300])
def test_an_attempt_costs_no_more_where_many_nodes_are_full_and_much_waits(
    tmp_path: Path, looks: list[Need], kinds: int
) -> None:
    attempts = 900
    needs = iter([Need("verify", 1.0, GB + number % kinds) for number in range(attempts)])

    async def lane(nodes: Cluster) -> None:
        for need in needs:
            async with nodes.placed(need):
                await anyio.sleep(0)

    async def run() -> None:
        nodes = cluster(tmp_path, 300)
        async with anyio.create_task_group() as group:
            for _ in range(600):
                group.start_soon(lane, nodes)
        assert nodes.waiting == nodes.placement.running == 0

    anyio.run(run)
    assert attempts <= len(looks) < 8 * attempts


def test_finding_no_room_is_quick_also_where_processors_are_free(looks: list[Need]) -> None:
    nodes = Placement()
    for number in range(500):
        nodes.join(f"node-{number}", Offer(4.0, GB, GB, ROLES, frozenset({None})))
    assert all(nodes.place(NEED) for _ in range(500))  # the memory is used up, three processors are not
    assert nodes.place(NEED) is None
    looks.clear()
    assert all(nodes.place(NEED) is None for _ in range(100))
    assert not looks
    nodes.release("node-7", NEED)
    assert nodes.place(NEED) == "node-7"
    assert len(looks) == 1


def test_nodes_that_lack_something_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Offer] = []
    real = Offer.lacks
    monkeypatch.setattr(Offer, "lacks", lambda offer, need: asked.append(offer) or real(offer, need))
    nodes = Placement()
    for number in range(500):
        nodes.join(f"node-{number}", Offer(1.0, GB, GB, ROLES, frozenset({None})))
    nodes.join("other", Offer(1.0, GB, GB, ROLES, frozenset({None, "image"})))
    assert nodes.place(Need("verify", 1.0, GB, image="image")) == "other"
    assert len(asked) == 2  # one of each kind


def test_a_rare_need_has_its_turn_although_a_common_one_always_waits(tmp_path: Path) -> None:
    rare, placed = Need("produce", 1.0, GB), 0

    async def run() -> None:
        nodes = cluster(tmp_path, 1)

        async def common() -> None:
            nonlocal placed
            while True:
                async with nodes.placed(NEED):
                    placed += 1
                    await anyio.sleep(0)

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(common)
            await anyio.sleep(0.01)
            before = placed
            with anyio.fail_after(30):
                async with nodes.placed(rare):
                    group.cancel_scope.cancel()
        assert placed - before < 20, "not after all that wait for the other"

    anyio.run(run)


def test_a_place_that_came_too_late_goes_to_the_next_who_waits(tmp_path: Path) -> None:
    async def run() -> None:
        nodes, got = cluster(tmp_path, 1), anyio.Event()
        scope = anyio.CancelScope()

        async def cancelled() -> None:
            with scope:
                async with nodes.placed(NEED):
                    raise AssertionError

        async def next_one() -> None:
            async with nodes.placed(NEED):
                got.set()

        async with anyio.create_task_group() as group:
            async with nodes.placed(NEED):
                group.start_soon(cancelled)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(next_one)
                await anyio.wait_all_tasks_blocked()
                scope.cancel()  # it is given the place now, and goes without it
            with anyio.fail_after(30):
                await got.wait()
        assert nodes.placement.running == 0

    anyio.run(run)
