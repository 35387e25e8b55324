"""What a node says is believed as far as its key goes, and not further."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cluster.liars import Liar
from tests.cluster.world import World
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.packs import REMOVED, changed, row, tasks, write_pack

from securebench._canonical import digest_bytes
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.cluster import frames, remote
from securebench.cluster.documents import Most, evidence_bytes
from securebench.cluster.members import Cluster
from securebench.cluster.remote import RemoteCourt
from securebench.cluster.setup import NodeReport, NodeSetup
from securebench.cluster.shipping import PIECE, Item, StoredContents
from securebench.engine.attempt import VERIFY_GUARD
from securebench.engine.court import Court
from securebench.engine.executors.wire import Connection, Frame
from securebench.errors import InfrastructureError, IntegrityError, SecureBenchError
from securebench.records.keys import signing_key_from
from securebench.records.nodes import Statement
from securebench.records.record import Judged

OTHER = signing_key_from(b"\2" * 32)
ENROLMENT = signing_key_from(b"\3" * 32)
CODE = changed(row("code_completion"), "eval.canonical_solution", REMOVED)


class Asked:
    """A head that has one node judge one candidate, as often as said."""

    def __init__(self, directory: Path, liar: Liar, times: int = 1) -> None:
        self.members: list[str] = []
        self.times = times
        self.notices: list[str] = []
        self.ended: str | SecureBenchError | None = None
        self.result: Judged | SecureBenchError | None = None
        world = World(directory / "run")
        config = world.config([CODE], "true")
        world.end()
        (self.task,) = tasks(write_pack(directory / "pack", [CODE]))
        store = CandidateStore(directory / "store")
        self.private = store.put(b"somebody else's candidate")
        self.cluster = Cluster(
            lambda role: NodeSetup.of(config, (None,), role=role, unsafe=False),
            StoredContents(store),
            notice=self.notices.append,
            patience=30,
        )
        self.cluster.enrol_with(config.run_id, ENROLMENT)
        self.court = RemoteCourt(self.cluster, config.run_id, store, Court(None, store, b"seed"), 1.0)
        anyio.run(self._ask, liar)

    async def _ask(self, liar: Liar) -> None:
        ours, theirs = socket.socketpair()
        candidate = CandidateArtifact.for_task(self.task, text="def add(a, b): return 0")
        with ours, theirs, anyio.fail_after(120):
            async with anyio.create_task_group() as group:
                group.start_soon(liar, Connection(theirs))
                group.start_soon(self._attend, Connection(ours))
                for _ in range(self.times):
                    try:
                        self.result = await self.court.judged(self.task, candidate)
                    except SecureBenchError as error:
                        self.result = error
                with anyio.move_on_after(60 if isinstance(self.result, IntegrityError) else 0.02):
                    while self.ended is None:
                        await anyio.sleep(0.01)
                self.members = list(self.cluster.members)
                group.cancel_scope.cancel()

    async def _attend(self, link: Connection) -> None:
        try:
            self.ended = await self.cluster.attend("liar", "both", 2.0, link)
        except SecureBenchError as error:
            self.ended = error


def test_a_result_that_its_key_signed_is_taken(tmp_path: Path) -> None:
    asked = Asked(tmp_path, Liar())
    assert isinstance(asked.result, Judged)
    assert asked.result.passed
    assert asked.result.voucher is not None
    assert asked.ended is None
    assert asked.members == ["liar"]


def edited(part: str, name: str, value: Any) -> Any:
    return lambda answer: {**answer, part: {**answer[part], name: value}}


def _deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return {"deep": value}


LIES: dict[str, Liar] = {
    "signed by another key than it reported": Liar(signs_with=OTHER),
    "statement edited after signing": Liar(of_answer=edited("statement", "score", 0.5)),
    "result edited after signing": Liar(of_answer=edited("result", "stdout", "x")),
    "no statement": Liar(of_answer=lambda answer: {**answer, "statement": None}),
    "no signature": Liar(of_answer=lambda answer: {**answer, "signature": "zz"}),
    "no result": Liar(of_answer=lambda answer: {**answer, "result": []}),
    "not an object": Liar(of_answer=lambda answer: [answer]),  # type: ignore[dict-item,return-value]
    "about another task": Liar(of_statement=lambda said: {**said, "task_id": "another"}),
    "about another attempt": Liar(of_statement=lambda said: {**said, "attempt": 2}),
    "about another run": Liar(of_statement=lambda said: {**said, "run_id": "another"}),
    "about another row": Liar(of_statement=lambda said: {**said, "row": "sha256:" + "0" * 64}),
    "about another candidate": Liar(of_statement=lambda said: {**said, "candidate": "sha256:" + "0" * 64}),
    "by another SecureBench": Liar(of_statement=lambda said: {**said, "securebench": "9 sha256:0"}),
    "about another phase": Liar(of_statement=lambda said: {**said, "phase": "produce"}),
    "says failed and sends passed": Liar(of_statement=lambda said: {**said, "status": "failed", "passed": False}),
    "says less assurance than it sends": Liar(of_statement=lambda said: {**said, "assurance": "shared_process"}),
    "a status there is not": Liar(
        of_result=lambda result: {**result, "status": "superb"}, of_statement=lambda said: {**said, "status": "superb"}
    ),
    "passed is a number": Liar(of_result=lambda result: {**result, "passed": 1}),
    "a part of the result is missing": Liar(of_result=lambda result: {**result, "controls": None}),
    "brings what is no list": Liar(of_answer=lambda answer: {**answer, "brings": {"a": 1}}),
    "brings an image that nobody asked for": Liar(
        of_answer=lambda answer: {**answer, "brings": [["i", "sha256:" + "0" * 64]]}
    ),
    "brings contents with a verdict": Liar(
        of_answer=lambda answer: {**answer, "brings": [["b", "sha256:" + "0" * 64]]}
    ),
    "an attempt that no number is": Liar(of_answer=edited("statement", "attempt", 2**60)),
    "passed without a score": Liar(
        of_result=lambda result: {**result, "score": None}, of_statement=lambda said: {**said, "score": None}
    ),
    "a score beyond any": Liar(
        of_result=lambda result: {**result, "score": 5.0}, of_statement=lambda said: {**said, "score": 5.0}
    ),
    "passed for a reason to fail": Liar(
        of_result=lambda result: {**result, "failure_reason": "tests_failed"},
        of_statement=lambda said: {**said, "failure_reason": "tests_failed"},
    ),
    "nested as deeply as can be read": Liar(of_answer=edited("result", "metadata", _deep(900))),
    "asks for what is not its attempt's": Liar(first=((frames.NEED, b"PRIVATE"),)),
    "asks with nonsense": Liar(first=((frames.NEED, b"{{{"),)),
    "a fault that is none": Liar(first=((frames.FAULT, b"[]"),)),
    "a fault that is no JSON": Liar(first=((frames.FAULT, b"\xff"),)),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_cannot_be_believed_is_refused_and_its_node_expelled(tmp_path: Path, lie: str) -> None:
    liar = LIES[lie]
    if (frames.NEED, b"PRIVATE") in liar.first:
        digest = CandidateStore(tmp_path / "same").put(b"somebody else's candidate")
        liar.first = ((frames.NEED, json.dumps([list(Item("b", digest))]).encode()),)
    asked = Asked(tmp_path, liar)
    assert isinstance(asked.result, IntegrityError), asked.result
    assert isinstance(asked.ended, IntegrityError), "it is not asked again"
    assert asked.members == []
    assert len(asked.notices) == 1
    assert "refused from now on" in asked.notices[0]
    assert not any(b"somebody else" in frame.data for frame in liar.heard)


def test_a_node_that_says_it_failed_stays(tmp_path: Path) -> None:
    fault = json.dumps({"kind": "", "message": "no room", "remedy": None}).encode()
    asked = Asked(tmp_path, Liar(first=((frames.FAULT, fault),)))
    assert isinstance(asked.result, InfrastructureError)
    assert str(asked.result) == "no room"
    assert asked.members == ["liar"]


def test_a_node_that_never_answers_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found out before the attempt takes too long, for which its candidate would have to answer."""
    monkeypatch.setattr(remote, "_ANSWER_SECONDS", VERIFY_GUARD - 0.5)
    asked = Asked(tmp_path, Liar(silent=True))
    assert isinstance(asked.result, IntegrityError)
    assert "has not answered" in str(asked.result)
    assert asked.members == []


def test_a_node_whose_key_is_none_does_not_join() -> None:
    with pytest.raises(IntegrityError, match="report"):
        NodeReport.decode(Liar()._report().encode().replace(b"ed25519:", b"rsa:"))


def test_a_node_that_talks_on_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """What it says about an attempt that is over fills nothing up."""
    chatter = tuple((frames.READING, b"[]") for _ in range(300))
    fault = (frames.FAULT, json.dumps({"kind": "", "message": "over", "remedy": None}).encode())
    asked = Asked(tmp_path, Liar(first=(fault, *chatter)), times=3)
    assert isinstance(asked.result, InfrastructureError)
    assert asked.ended is None
    assert asked.members == ["liar"]


@pytest.mark.parametrize("items", [1, 300])
def test_a_node_that_sends_more_than_any_attempt_brings_is_expelled_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, items: int
) -> None:
    monkeypatch.setattr(remote, "most_brought", lambda kind: Most(200, 10 * PIECE))
    world, flood = World(tmp_path / "w"), Flood(items)
    try:
        world.add("flood", role="produce", serve=flood)
        (record,) = world.run([row("short_answer")], "true")
    finally:
        world.end()
    assert record["verification_status"] == "error"
    assert any("node flood is refused from now on" in notice for notice in world.notices)
    assert flood.pieces < 200, "it was not heard to its end"
    assert flood.asked == (items == 1)


class Flood(Liar):
    """Brings so many contents, and goes on sending."""

    def __init__(self, items: int) -> None:
        super().__init__()
        self.items, self.pieces, self.asked = items, 0, False

    async def __call__(self, head: Connection) -> None:
        setup_frame = await head.receive()
        assert setup_frame is not None
        await head.send(frames.READY, 0, self._report().encode())
        order = await head.receive()
        assert order is not None
        brings = [["b", f"sha256:{number:064x}"] for number in range(self.items)]
        await head.send(frames.RESULT, order.number, self._produced(NodeSetup.decode(setup_frame.data), order, brings))
        while (frame := await head.receive()) is not None:
            if frame.kind == frames.NEED:
                self.asked = True
                with suppress(ConnectionError):
                    while self.pieces < 200:
                        await head.send(frames.PIECE, order.number, bytes(PIECE))
                        self.pieces += 1

    def _produced(self, setup: NodeSetup, order: Frame, brings: list[list[str]]) -> bytes:
        asked = json.loads(order.data)
        result: dict[str, Any] = {**dict.fromkeys(("candidate", "failure", "fault")), "stdout": "", "stderr": ""}
        result |= {"metadata": {}, "usage": {}, "evidence": {}}
        said = Statement(
            phase="produce",
            run_id=setup.run_id,
            task_id=asked["task_id"],
            attempt=asked["attempt"],
            securebench=setup.securebench,
            evidence=digest_bytes(evidence_bytes(result)),
        )
        signature = self.key.sign(said.encode()).hex()
        answer = {"statement": said.model_dump(mode="json"), "signature": signature, "brings": brings}
        return json.dumps({**answer, "result": result}).encode()


def wrong_run(tmp_path: Path, liar: Liar) -> tuple[World, list[dict[str, Any]]]:
    """A run whose candidate is wrong; produced by an honest node, and judged by the liar."""
    need_bubblewrap()
    world = World(tmp_path / "w")
    try:
        world.add("honest", role="produce")
        liar.joins = lambda: world.cluster is not None and "honest" in world.cluster.members
        world.add("liar", role="verify", serve=liar)
        return world, world.run([CODE], "printf 'def add(a, b): return 0'")
    finally:
        world.end()


def test_evidence_that_another_key_signed_becomes_no_verdict_of_a_run(tmp_path: Path) -> None:
    world, (record,) = wrong_run(tmp_path, Liar(signs_with=OTHER))
    assert record["verification_status"] == "error"
    assert record["passed"] is None
    assert "did not sign" in record["failure_message"]
    assert any("node liar is refused from now on" in notice for notice in world.notices)


def test_a_node_that_lies_with_its_own_key_is_found_by_regrading_and_by_nothing_before(tmp_path: Path) -> None:
    """An enrolled key says who said it, not that it is true. The record names the node, and whoever judges the stored
    candidate again comes to another verdict."""
    world, (record,) = wrong_run(tmp_path, Liar())
    assert record["passed"], "the lie stands in the record"
    assert record["nodes"]["verify"]["node"]["name"] == "liar", "and so does who told it"
    run = world.directory / "out"
    assert securebench("verify", run).code == 0
    again = securebench("regrade", run, "--config", world.directory / "tester.yaml", "--json")
    assert again.code != 0, again.out + again.err
    assert "code-1" in again.out
