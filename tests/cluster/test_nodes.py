"""Nodes as real processes: what goes to them, what becomes of an attempt when one is killed, and what they leave."""

from __future__ import annotations

import os
import re
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cluster.world import Node, World, at, eventually, processes_naming
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.packs import FILES, REMOVED, changed, marked_rows, row, write_pack

from securebench.candidates.store import CandidateStore
from securebench.cluster import frames
from securebench.cluster.members import Cluster
from securebench.cluster.setup import NodeSetup
from securebench.cluster.shipping import StoredContents
from securebench.errors import IntegrityError

CODE = changed(row("code_completion"), "eval.canonical_solution", REMOVED)
RIGHT = "printf 'def add(a, b): return a + b'"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    need_bubblewrap()
    made = World(tmp_path / "w")
    yield made
    made.end()


def nodes_of(record: dict[str, Any]) -> dict[str, str]:
    return {phase: voucher["node"]["name"] for phase, voucher in record["nodes"].items()}


# -- what goes where ------------------------------------------------------------------------------------------------

EXECUTING = ("code_completion", "repo_patch", "terminal_task")


def marked_pack(world: World, marks: dict[str, str]) -> list[dict[str, Any]]:
    """Rows with the mark of their family in every private field, and hidden files with a mark of their own."""
    rows = []
    for family, mark in marks.items():
        found = [made for made in marked_rows(mark) if made["family"] == family]
        rows += found
    for made in rows:
        if made["family"] == "repo_patch":
            made["assets"] = [{"path": "tree"}]
    files = {**FILES, "hidden/check.py": f"# {marks['files']}\n", "hidden/secret.txt": f"{marks['files']}\n"}
    write_pack(world.directory, rows, files=files)
    return rows


def test_a_node_that_only_produces_receives_nothing_private(world: World) -> None:
    marks = {name: secrets.token_hex(12) for name in (*EXECUTING, "files")}
    producer, judge = world.add("p", role="produce"), world.add("v", role="verify", cpus=1.0)
    records = world.run(marked_pack(world, marks), "echo changed > changed.txt; echo 1")
    assert {record["task_type"] for record in records} == set(EXECUTING)
    assert frames.VERIFY not in kinds_sent(producer)
    seeds = set(re.findall(rb'"seed": ?"([0-9a-f]{32,})"', bytes(judge.sent)))
    assert len(seeds) == 1
    assert {nodes_of(record)["produce"] for record in records} == {"p"}
    for mark in (*(mark.encode() for mark in marks.values()), *seeds):
        assert mark in judge.sent, "the mark would be seen"
        assert mark not in producer.sent


def test_a_node_that_only_produces_is_not_asked_to_verify_and_would_not(world: World) -> None:
    produces, verifies = world.add("p", role="produce"), world.add("v", role="verify")
    (record,) = world.run([CODE], RIGHT)
    assert nodes_of(record) == {"produce": "p", "verify": "v"}
    assert record["passed"]
    for node, kind in ((produces, frames.VERIFY), (verifies, frames.PRODUCE)):
        assert kind not in kinds_sent(node)


def kinds_sent(node: Node) -> set[int]:
    found, at_byte, data = set(), 0, bytes(node.sent)
    while at_byte < len(data):
        found.add(data[at_byte + 4])
        at_byte += 9 + int.from_bytes(data[at_byte : at_byte + 4], "little")
    return found


# -- killed ---------------------------------------------------------------------------------------------------------


def test_a_node_killed_before_the_agent_started_costs_nothing_and_is_recorded(world: World) -> None:
    world.add("a", kill=at(frames.PRODUCE))
    world.add("b", after="a")
    (record,) = world.run([CODE], RIGHT)
    assert record["passed"]
    assert nodes_of(record) == {"produce": "b", "verify": "b"}
    (repeat,) = record["repeats"]
    assert repeat["phase"] == "produce"
    assert "node a was lost while it produced" in repeat["fault"]


@pytest.mark.parametrize("moment", [frames.STARTED, frames.GO], ids=["started", "acknowledged"])
def test_a_node_killed_after_the_agent_started_gives_no_second_try(world: World, moment: int) -> None:
    world.add("a", kill=at(moment))
    world.add("b", after="a")
    (record,) = world.run([CODE], RIGHT)
    assert record["verification_status"] == "error"
    assert record["passed"] is None
    assert "node a was lost while it produced" in record["failure_message"]
    assert record["repeats"] == []
    assert frames.PRODUCE not in kinds_sent(world.nodes["b"]), "nobody else was asked"


def test_an_attempt_lost_with_its_node_is_made_again_only_when_the_run_is_continued(world: World) -> None:
    world.add("a", kill=at(frames.GO))
    world.add("b", after="a")
    config = world.config([CODE], RIGHT)
    world.carry_out(config)
    del world.nodes["a"]
    world.nodes["b"].after = None
    world.nodes["b"].over = anyio.Event()
    world.carry_out(config, resume=True)
    first, second = world.records()
    assert (first["verification_status"], second["verification_status"]) == ("error", "passed")
    assert securebench("verify", world.directory / "out").code == 0


def test_a_node_killed_while_it_verifies_has_another_judge_the_same_candidate(world: World) -> None:
    world.add("p", role="produce")
    world.add("a", role="verify", kill=at(frames.VERIFY))
    world.add("b", role="verify", after="a")
    (record,) = world.run([CODE], RIGHT)
    assert record["passed"]
    assert nodes_of(record) == {"produce": "p", "verify": "b"}
    (repeat,) = record["repeats"]
    assert repeat["phase"] == "verify"


def test_nothing_is_left_of_nodes_that_were_killed_nor_of_the_run(world: World) -> None:
    world.add("a", kill=at(frames.OUTPUT))
    world.add("b", after="a")
    (record,) = world.run([CODE], "echo on; sleep 0.2; sleep 1000 & printf 'def add(a, b): return a + b'; wait")
    assert record["verification_status"] == "error"
    assert eventually(lambda: not processes_naming(str(world.temporary)))
    assert not [path for path in world.temporary.iterdir() if path.name.startswith("securebench-")]


# -- which nodes ----------------------------------------------------------------------------------------------------

BLIND = """
import shutil
found = shutil.which
shutil.which = lambda name, *more, **words: None if name in ("bwrap", "docker", "podman") else found(name, *more, **words)
"""


def test_a_node_without_bubblewrap_gets_nothing_to_execute(world: World) -> None:
    place = world.temporary / "blind"
    place.mkdir()
    (place / "sitecustomize.py").write_text(BLIND)
    path = [str(place), *(entry for entry in sys.path if Path(entry).is_absolute())]
    bare = world.add("bare", cpus=64.0, PYTHONPATH=os.pathsep.join(path))
    world.add("good", cpus=1.0)
    records = world.run([changed(CODE, "id", f"c{number}") for number in range(3)], RIGHT)
    assert all(record["passed"] for record in records)
    assert {name for record in records for name in nodes_of(record).values()} == {"good"}
    assert kinds_sent(bare) == {frames.SETUP}
    assert any(notice.startswith("node bare does not get all there is to do") for notice in world.notices)


def test_a_node_with_another_securebench_is_refused(world: World) -> None:
    config = world.config([CODE], RIGHT)
    setup = NodeSetup.of(config, (None,), role="both", unsafe=False)
    ended: dict[str, object] = {}

    async def attend(digest: str) -> None:
        told = setup.model_copy(update={"securebench": digest})
        contents = StoredContents(CandidateStore(world.temporary / "c"))
        cluster = Cluster(lambda role: told, contents, notice=world.notices.append, patience=1)
        node = world.add("n")
        async with anyio.create_task_group() as group:
            with node.link(group) as link, anyio.fail_after(60):
                group.start_soon(_end_when_there, cluster, node)
                try:
                    ended[digest] = await cluster.attend("n", "both", 1.0, link)
                except IntegrityError as error:
                    ended[digest] = error
            group.cancel_scope.cancel()

    for digest in (setup.securebench, "0.0.1 sha256:0"):
        anyio.run(attend, digest)
    assert isinstance(ended["0.0.1 sha256:0"], IntegrityError)
    assert "install the same" in str(ended["0.0.1 sha256:0"])
    assert isinstance(ended[setup.securebench], str), "the same one was taken in"


async def _end_when_there(cluster: Cluster, node: Node) -> None:
    while not cluster.members:
        await anyio.sleep(0.02)
    node.slay()


def test_a_node_ends_when_its_head_is_gone(world: World) -> None:
    node = world.add("n")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = node._start(theirs)
        node.processes.append(process)
    assert process.wait(60) == 0
    assert world.leftovers() == []
