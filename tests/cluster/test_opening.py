"""Which clusters and nodes are taken, and what is asked of those that can grow; by simulators in the place of Ray."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cluster.liars import Liar
from tests.cluster.ray_world import need_ray
from tests.cluster.test_waiting import GB, NEED, cluster

from securebench.cluster import opening
from securebench.cluster import ray as on_ray
from securebench.cluster.members import Cluster, Member
from securebench.cluster.opening import _Same, _Watch
from securebench.cluster.placement import Need
from securebench.cluster.ray import RayLink, RayNode, living_nodes
from securebench.cluster.setup import NodeReport
from securebench.errors import ConfigError, InfrastructureError

# -- clusters that can grow -----------------------------------------------------------------------------------------


class Grows:
    """A cluster without a node, and what it is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[dict[str, int]] = []
        self.deaf = 0  # times that it hears nothing
        self.nodes: list[RayNode] = []
        self.notices: list[str] = []
        monkeypatch.setattr(on_ray, "seen_nodes", self._seen)
        monkeypatch.setattr(on_ray, "ask_for_cpus", self._ask)
        monkeypatch.setattr(opening, "_LOOK_SECONDS", 0.01)

    def _ask(self, ray: Any, cpus: dict[str, int]) -> str | None:
        self.asked.append(cpus)
        return None if len(self.asked) > self.deaf else "deaf"

    async def _seen(self, ray: Any) -> list[RayNode]:
        return self.nodes

    async def watch(self, nodes: Cluster, found: bool) -> _Watch:
        """For a moment."""
        watch = _Watch(None, nodes, self.notices.append, 512)
        watch.found = found
        async with anyio.create_task_group() as group:
            group.start_soon(watch.run, group)
            await anyio.sleep(0.2)
            group.cancel_scope.cancel()
        return watch


def test_a_cluster_without_a_node_is_asked_for_one_of_each_role_and_for_none_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows = Grows(monkeypatch)

    async def run() -> None:
        await grows.watch(cluster(tmp_path, 0, roles=("produce", "verify")), found=False)

    anyio.run(run)
    assert grows.asked == [{"produce": 1, "verify": 1}, {}]


def test_what_a_cluster_did_not_hear_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grows = Grows(monkeypatch)
    grows.deaf = 2

    async def run() -> None:
        await grows.watch(cluster(tmp_path, 0, roles=("verify",)), found=False)

    anyio.run(run)
    assert grows.asked == [{"verify": 1}] * 3 + [{}]
    assert grows.notices == ["the cluster could not be asked to grow, and is asked again: deaf"]


def test_an_ask_under_way_when_a_run_ends_is_followed_by_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows = Grows(monkeypatch)
    hear = grows._ask

    def slowly(ray: Any, cpus: dict[str, int]) -> str | None:
        time.sleep(0.5)
        return hear(ray, cpus)

    monkeypatch.setattr(on_ray, "ask_for_cpus", slowly)

    async def run() -> None:
        await grows.watch(cluster(tmp_path, 0, roles=("verify",)), found=False)

    anyio.run(run)
    assert grows.asked == [{"verify": 1}, {}]


HEAD_GONE_WHILE_ASKED = """
import sys, time
from pathlib import Path
import anyio
from tests.cluster.test_waiting import cluster
from securebench.cluster import opening, ray as on_ray

async def nobody(ray):
    return None

on_ray.seen_nodes = nobody
on_ray.ask_for_cpus = lambda ray, cpus: time.sleep(3600)
opening._LOOK_SECONDS, opening._GONE_SECONDS, opening._RELEASE_SECONDS = 0.05, 0.5, 0.5

async def main():
    nodes = cluster(Path(sys.argv[1]), 0, roles=("verify",))
    watch = opening._Watch(None, nodes, print, 8)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run, tasks)
        if sys.argv[2] == "left":
            await anyio.sleep(0.2)
            tasks.cancel_scope.cancel()
    print("gone" if nodes.fault is not None else "left")

anyio.run(main)
"""


@pytest.mark.parametrize("why", ["gone", "left"])
def test_a_cluster_that_never_answers_an_ask_keeps_no_run_from_ending(tmp_path: Path, why: str) -> None:
    argv = [sys.executable, "-c", HEAD_GONE_WHILE_ASKED, str(tmp_path), why]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{why}\n"), done.stderr


def test_a_cluster_is_asked_for_the_processors_that_attempts_count_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows = Grows(monkeypatch)

    async def run() -> None:
        nodes = cluster(tmp_path, 1)

        async def hold(need: Need) -> None:
            async with nodes.placed(need):
                await anyio.sleep_forever()

        async with anyio.create_task_group() as group:
            for need in (NEED, *[Need("verify", 0.25, GB)] * 10, Need("produce", 2.0, GB)):
                group.start_soon(hold, need)
            await anyio.wait_all_tasks_blocked()
            await grows.watch(nodes, found=True)
            group.cancel_scope.cancel()

    anyio.run(run)
    assert grows.asked == [{"verify": 4, "produce": 2}, {}]  # one that runs, and a quarter for each that waits


# -- who is missing -------------------------------------------------------------------------------------------------


def test_a_cluster_without_nodes_says_once_that_one_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows = Grows(monkeypatch)
    monkeypatch.setattr(opening, "_NOBODY_SECONDS", 0.05)
    anyio.run(grows.watch, cluster(tmp_path, 0), False)
    assert grows.notices == ["the cluster has no node yet; one is waited for, for 300 s"]


@pytest.mark.parametrize(
    ("label", "told"),
    [("both", []), ("verify", []), ("produce", ["verify"])],
)
def test_a_role_is_missing_where_no_node_has_it_not_where_one_is_slow_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, told: list[str]
) -> None:
    grows = Grows(monkeypatch)
    grows.nodes = [RayNode("1", "n", label, 1.0)]

    async def never(*_: Any) -> str:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(_Watch, "_serve", never)
    notices: list[str] = []

    async def run() -> None:
        nodes = cluster(tmp_path, 0, roles=("verify",))
        watch = await grows.watch(nodes, found=True)
        nodes._notice = notices.append  # type: ignore[method-assign]
        nodes.tell_missing(watch.promised)

    anyio.run(run)
    assert [role for role in ("produce", "verify") for said in notices if f"may {role}" in said] == told


# -- which nodes ----------------------------------------------------------------------------------------------------


def test_a_node_whose_role_is_none_takes_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grows = Grows(monkeypatch)
    grows.nodes = [RayNode("1", "n", "prodcue", 1.0)]
    monkeypatch.setattr(on_ray, "open_pipe", pytest.fail)
    watch: list[_Watch] = []

    async def run() -> None:
        watch.append(await grows.watch(cluster(tmp_path, 0), found=False))

    anyio.run(run)
    (notice,) = grows.notices
    assert "node n takes no part" in notice
    for word in ("'prodcue'", "produce", "verify", "both"):
        assert word in notice
    assert isinstance(watch[0].refusal, ConfigError)


def report(**changes: Any) -> NodeReport:
    return Liar()._report().model_copy(update=changes)


def test_a_node_that_is_refused_does_not_decide_what_an_image_is() -> None:
    same = _Same({"a": "1"})
    assert same.problem(report(images={"b": "9", "a": "2"})) is not None
    assert same.problem(report(images={"b": "3", "a": "1"}, tools={"t": "1"})) is None
    assert same.problem(report(images={"b": "9"})) is not None
    assert same.problem(report(images={"c": "9"}, tools={"t": "2"})) is not None
    assert same.problem(report(images={"c": "3"})) is None


class KnowsNodes:
    def __init__(self, *nodes: dict[str, Any]) -> None:
        self._nodes = nodes

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"Alive": True, "NodeID": f"{number}" * 10, "NodeManagerAddress": "10.0.0.1", "Labels": {}, **node}
            for number, node in enumerate(self._nodes)
        ]


def test_what_nodes_on_one_machine_share_counts_once(tmp_path: Path) -> None:
    found = living_nodes(
        KnowsNodes(
            {"Resources": {"CPU": 2.0, "memory": 3.0 * GB}, "Labels": {"securebench.role": "verify"}},
            {"Resources": {"CPU": 2.0, "memory": 100.0 * GB}, "Labels": {"securebench.role": "verfy"}},
            {"Resources": {"CPU": 2.0}, "NodeManagerAddress": "10.0.0.2"},
            {"Resources": {}},
            {"Resources": {"CPU": 2.0}, "Alive": False},
        )
    )
    assert [(node.role, node.memory, node.sharing) for node in found] == [
        ("verify", 3 * GB, 2),
        ("verfy", 100 * GB, 2),
        ("both", None, 1),
    ]

    async def run() -> None:
        nodes = cluster(tmp_path, 0)
        for node in found:
            member = Member(node.name, report(), None)  # type: ignore[arg-type]
            nodes._join(member, "both", node.cpus, node.memory, node.sharing)
        offers = [made.offer for made in nodes.placement._nodes.values()]
        assert [(offer.memory, offer.disk) for offer in offers] == [(3 * GB, 2**35), (4 * GB, 2**35), (8 * GB, 2**36)]

    anyio.run(run)


class Remote:
    """A method of an actor."""

    def __init__(self, call: Any) -> None:
        self.remote = call


class Actor:
    def __init__(self, there: float) -> None:
        self.finished = False
        self.last_words, self.finish = Remote(self._words), Remote(self._finish)
        self.receive, self._there = Remote(self._receive), there

    async def _words(self) -> str:
        await anyio.sleep(self._there)
        return ""

    async def _finish(self) -> None:
        self.finished = True

    async def _receive(self) -> bytes:
        raise RuntimeError("the actor died:\n\tits node ran out of memory")


@pytest.mark.parametrize("there", [0.0, 60.0])
def test_a_node_that_others_hold_is_named_and_not_waited_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: float
) -> None:
    monkeypatch.setattr(opening, "_HELD_SECONDS", 0.1)
    actor, notices = Actor(there), []

    class Library:
        kill = staticmethod(lambda actor: None)

    monkeypatch.setattr(on_ray, "open_pipe", lambda *words: actor)

    async def run() -> None:
        nodes = cluster(tmp_path, 0)
        watch = _Watch(Library, nodes, notices.append, None)

        async def attend(*words: Any, **more: Any) -> str:
            await anyio.sleep(0.4)
            return "over"

        monkeypatch.setattr(nodes, "attend", attend)
        with anyio.fail_after(50):
            assert await watch._serve(RayNode("1", "n", "both", 1.0)) == "over"

    anyio.run(run)
    assert notices == ([] if there == 0 else ["node n is waited for: its processors are taken, perhaps by another run"])
    assert actor.finished == (there == 0)


def test_why_a_link_was_lost_is_said_in_rays_words() -> None:
    async def run() -> None:
        link = RayLink(Actor(0))
        assert await link.receive() is None
        assert link.lost == "RuntimeError: the actor died: its node ran out of memory"

    anyio.run(run)


# -- which clusters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probe", "lets_in"),
    [("", True), ("import sys; sys.exit(3)", False), ("import sys; print('no route'); sys.exit(1)", None)],
)
def test_only_a_refusal_says_that_a_cluster_is_closed(
    monkeypatch: pytest.MonkeyPatch, probe: str, lets_in: bool | None
) -> None:
    need_ray()
    monkeypatch.setattr(on_ray, "_PROBE", probe)
    if lets_in is None:
        with pytest.raises(InfrastructureError, match=r"no Ray cluster answers at 10.0.0.1:1: no route"):
            on_ray._lets_in_whoever_asks("10.0.0.1:1")
    else:
        assert on_ray._lets_in_whoever_asks("10.0.0.1:1") is lets_in


def test_who_is_looked_at_is_who_auto_means(monkeypatch: pytest.MonkeyPatch) -> None:
    need_ray()
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert on_ray._resolved("auto") == "10.0.0.1:6379"
    assert on_ray._resolved("10.0.0.2:1") == "10.0.0.2:1"


@pytest.mark.parametrize("address", ["lcoal", "", "http://x", "127.0.0.1", "ray://10.0.0.1", "10.0.0.1:6379/x"])
def test_what_is_no_address_is_the_operators_mistake(address: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        on_ray._resolved(address)


@pytest.mark.parametrize(
    "address", ["10.0.0.1:6379", "head.cluster_1.local:6379", "[::1]:6379", "ray://h:10001", "auto"]
)
def test_addresses_have_this_form(address: str) -> None:
    assert on_ray._ADDRESS.fullmatch(address)


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("RPC error: InvalidAuthToken: x", "it has another one than RAY_AUTH_TOKEN"),
        (
            "Token authentication is on but no authentication token was found. Please ...",
            "without its token: put it into",
        ),
        ("no route", "is it running"),
    ],
)
def test_why_a_cluster_does_not_answer_is_said_in_a_line(said: str, means: str) -> None:
    need_ray()
    assert means in str(on_ray._no_answer(on_ray.require_ray(), "10.0.0.1:1", said))


def test_an_address_of_rays_client_without_it_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    need_ray()
    monkeypatch.setattr(on_ray, "find_spec", lambda name: None)
    monkeypatch.setenv("RAY_ADDRESS", "ray://10.0.0.1:10001")
    for address in ("ray://10.0.0.1:10001", "auto"):
        with pytest.raises(ConfigError, match=r"pip install 'ray\[client\]'"):
            on_ray._resolved(address)
