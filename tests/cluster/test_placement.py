"""Which node gets work: rules on values, and against a model that tries every node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from securebench.candidates.store import CandidateStore
from securebench.cluster.members import Cluster, Member
from securebench.cluster.placement import Need, Offer, Placement
from securebench.cluster.setup import Machine, NodeReport
from securebench.cluster.shipping import StoredContents

GB = 2**30
BOTH = frozenset({"produce", "verify"})
OWN: frozenset[str | None] = frozenset({None})
NEED = Need("produce", 1.0, GB)
OFFER = Offer(4.0, 8 * GB, 100 * GB, BOTH, OWN)


def placement(**offers: Offer) -> Placement:
    made = Placement()
    for name, offer in offers.items():
        made.join(name, offer)
    return made


def test_work_goes_where_most_processors_are_free() -> None:
    nodes = placement(small=replace(OFFER, cpus=2.0), large=OFFER)
    chosen = [nodes.place(NEED) for _ in range(6)]
    assert chosen.count("large") == 4
    assert chosen.count("small") == 2
    assert nodes.place(NEED) is None


def test_a_node_gets_only_what_its_role_is_for() -> None:
    nodes = placement(judge=replace(OFFER, roles=frozenset({"verify"})))
    assert nodes.place(NEED) is None
    assert nodes.why_nowhere(NEED) == "every node is not there to produce"
    assert nodes.place(replace(NEED, role="verify")) == "judge"


def test_a_node_without_the_image_or_without_walls_gets_nothing() -> None:
    nodes = placement(bare=replace(OFFER, images=frozenset()), plain=OFFER)
    pictured = replace(NEED, image="python:3")
    assert nodes.place(pictured) is None
    assert "does not have the image python:3" in str(nodes.why_nowhere(pictured))
    assert {nodes.place(NEED) for _ in range(4)} == {"plain"}
    nodes.leave("plain")
    assert nodes.why_nowhere(NEED) == "every node has no sandbox that may be used"


def test_what_is_too_large_for_any_node_runs_alone_on_one() -> None:
    nodes = placement(only=OFFER)
    huge = Need("produce", 99.0, 999 * GB, 9999 * GB)
    small = nodes.place(NEED)
    assert small == "only"
    assert nodes.place(huge) is None, "not beside something else"
    nodes.release("only", NEED)
    assert nodes.place(huge) == "only"
    assert nodes.place(NEED) is None, "and nothing beside it"
    nodes.release("only", huge)
    assert nodes.place(NEED) == "only"


def test_memory_and_disk_bound_as_processors_do() -> None:
    assert _held(replace(NEED, memory=3 * GB)) == 2
    assert _held(replace(NEED, disk=50 * GB)) == 2
    assert _held(NEED) == 4


def _held(need: Need) -> int:
    nodes = placement(only=OFFER)
    return sum(nodes.place(need) is not None for _ in range(10))


# -- against a model ------------------------------------------------------------------------------------------------

_offers = st.builds(
    Offer,
    st.sampled_from([1.0, 2.0, 4.0]),
    st.sampled_from([2 * GB, 4 * GB]),
    st.sampled_from([5 * GB, 10 * GB]),
    st.sampled_from([BOTH, frozenset({"produce"}), frozenset({"verify"})]),
    st.sampled_from([OWN, frozenset({None, "i"}), frozenset()]),
)
_needs = st.builds(
    Need,
    st.sampled_from(["produce", "verify"]),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.sampled_from([GB, 3 * GB]),
    st.sampled_from([0, 6 * GB]),
    st.sampled_from([None, "i"]),
)
_steps = st.one_of(
    st.tuples(st.just("join"), st.sampled_from("abc"), _offers),
    st.tuples(st.just("leave"), st.sampled_from("abc"), st.none()),
    st.tuples(st.just("place"), st.none(), _needs),
    st.tuples(st.just("release"), st.integers(0, 9), st.none()),
)


class _Model:
    """Every node with the list of what runs on it; free is what is left of the offer."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[Offer, list[Need]]] = {}

    def can(self, name: str, need: Need) -> bool:
        offer, running = self.nodes[name]
        if need.role not in offer.roles or need.image not in offer.images:
            return False
        fits = all(
            getattr(offer, part) - sum(getattr(other, part) for other in running) >= getattr(need, part)
            for part in ("cpus", "memory", "disk")
        )
        return fits or not running

    def share(self, name: str) -> float:
        offer, running = self.nodes[name]
        return (offer.cpus - sum(need.cpus for need in running)) / offer.cpus


@settings(max_examples=150)
@given(st.lists(_steps, max_size=60))
def test_every_choice_is_one_that_trying_every_node_allows(steps: list[tuple[str, Any, Any]]) -> None:
    real, model = Placement(), _Model()
    for what, which, value in steps:
        if what == "join" and which not in model.nodes:
            real.join(which, value)
            model.nodes[which] = value, []
        elif what == "leave":
            real.leave(which)
            model.nodes.pop(which, None)
        elif what == "place":
            possible = [name for name in model.nodes if model.can(name, value)]
            chosen = real.place(value)
            assert (chosen in possible) if possible else chosen is None
            if chosen is not None:
                assert model.share(chosen) == max(map(model.share, possible))
                model.nodes[chosen][1].append(value)
        elif what == "release":
            running = [(name, need) for name, (_, needs) in sorted(model.nodes.items()) for need in needs]
            if running:
                name, need = running[which % len(running)]
                model.nodes[name][1].remove(need)
                real.release(name, need)
        assert real.running == sum(len(needs) for _, needs in model.nodes.values())
        assert set(real.free) == set(model.nodes)


# -- those that wait ------------------------------------------------------------------------------------------------


class _Silent:
    """A link nobody is behind."""

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None: ...

    async def receive(self) -> None:
        await anyio.sleep_forever()


def member(name: str) -> Member:
    machine = Machine(cpus=2, memory=8 * GB, disk=99 * GB, kernel="k", architecture="a", python="3")
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
    return Member(name, report, _Silent())


def cluster(tmp_path: Any, *names: str) -> Cluster:
    made = Cluster(
        lambda role: (_ for _ in ()).throw(AssertionError(role)),
        StoredContents(CandidateStore(tmp_path)),
        notice=lambda text: None,
        patience=5,
    )
    for name in names:
        made._join(member(name), "both", None)
    return made


def test_large_work_comes_to_its_turn_however_much_small_work_comes(tmp_path: Any) -> None:
    large, small = Need("produce", 2.0, GB), Need("produce", 1.0, GB)
    placed, stop = [], False

    async def run() -> None:
        nonlocal stop
        nodes = cluster(tmp_path, "only")

        async def again_and_again() -> None:
            while not stop:
                async with nodes.placed(small):
                    placed.append("small")
                    await anyio.sleep(0.0005)

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(again_and_again)
                await anyio.sleep(0.0002 * number)
            with anyio.fail_after(60):
                async with nodes.placed(large):
                    placed.append("large")
            stop = True

    anyio.run(run)
    assert "large" in placed
    assert placed.index("large") > 20, "others did not wait for it at once"


def test_what_a_node_that_left_had_is_not_given_to_one_of_the_same_name(tmp_path: Any) -> None:
    async def run() -> None:
        nodes = cluster(tmp_path, "a")
        first = nodes.members["a"]
        async with nodes.placed(NEED):
            nodes._leave(first)
            nodes._join(member("a"), "both", None)
        assert nodes.placement.free == {"a": 2.0}
        nodes._leave(first)
        assert nodes.placement.free == {"a": 2.0}, "the one that left earlier leaves once"

    anyio.run(run)


def test_whoever_is_cancelled_while_it_waits_leaves_no_trace(tmp_path: Any) -> None:
    async def run() -> None:
        nodes = cluster(tmp_path)
        with anyio.move_on_after(0.05):
            async with nodes.placed(NEED):
                raise AssertionError
        assert nodes.waiting == 0
        nodes._join(member("a"), "both", None)
        assert nodes.placement.free == {"a": 2.0}

    anyio.run(run)
