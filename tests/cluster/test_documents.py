"""What crosses between head and nodes comes out as it went in; what is none of ours is refused."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from tests.packs import VALID_ROWS, row, tasks, write_pack

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree, TreeEntry, delta_between
from securebench.cluster import documents
from securebench.cluster.documents import (
    candidate_from,
    candidate_json,
    decoded,
    delta_bytes,
    evidence_bytes,
    judged_from,
    judged_json,
    most_brought,
    produce_order,
    produced,
    producer_request,
    production_from,
    trees_of,
    verify_order,
    verify_order_from,
)
from securebench.cluster.shipping import Item
from securebench.errors import CandidateError, FailureReason, IntegrityError
from securebench.families.base import CandidateKind
from securebench.families.registry import FAMILIES
from securebench.harnesses.base import ProducerRequest, Production
from securebench.records.record import Judged
from securebench.resources import Component
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Assurance, Status


@pytest.fixture
def store(tmp_path: Path) -> CandidateStore:
    return CandidateStore(tmp_path / "store")


def place(digest: str, path: PurePosixPath) -> Path:
    return Path("/elsewhere") / digest[7:] / path.name


def task(tmp_path: Path, family: str) -> SecureBenchTask:
    (made,) = tasks(write_pack(tmp_path / "pack", [row(family)]))
    return made


def candidate(kind: CandidateKind, store: CandidateStore) -> CandidateArtifact:
    """One of every kind, with everything that such a one can have."""
    if kind in (CandidateKind.TEXT, CandidateKind.CODE):
        return CandidateArtifact("t", kind, text="ü \ud800 \0 text", metadata={"a": [1, None]})
    before = Tree.of([TreeEntry.file("a", store.put(b"old"), 3)])
    after = Tree.of([TreeEntry.file("a", store.put(b"new"), 3, executable=True), TreeEntry.link("l", "a")])
    store.save(before)
    store.save(after)
    if kind is CandidateKind.WORKSPACE:
        return CandidateArtifact("t", kind, workspace=after.digest, workspace_bytes=3)
    capture = {"pristine": before.digest, "tree": after.digest, "delta": "d"}
    return CandidateArtifact(
        "t", kind, patch="--- a\n", delta=delta_between(before, after), metadata={"capture": capture}
    )


def over_the_wire(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("kind", list(CandidateKind))
def test_a_candidate_of_every_kind_arrives_as_it_was(kind: CandidateKind, store: CandidateStore) -> None:
    made = candidate(kind, store)
    came = candidate_from(over_the_wire(candidate_json(made)), made.delta)
    assert came == made
    assert came.digest == made.digest


@pytest.mark.parametrize("kind", list(CandidateKind))
def test_a_production_arrives_with_all_that_its_record_will_name(kind: CandidateKind, store: CandidateStore) -> None:
    made = Production(
        candidate(kind, store), stdout="out", stderr="err", usage={"n": 1}, evidence={"egress.json": b"\0\xff"}
    )
    brought = produced(made, store)
    came = production_from(over_the_wire(brought.document), store, 100)
    assert (came.candidate, came.stdout, came.evidence) == (made.candidate, "out", {"egress.json": b"\0\xff"})
    sent = {item.digest for item in brought.items}
    assert made.candidate is not None
    assert set(trees_of(made.candidate)) <= sent
    assert len(list(trees_of(made.candidate))) == {CandidateKind.PATCH: 2, CandidateKind.WORKSPACE: 1}.get(kind, 0)
    assert evidence_bytes(brought.document) == evidence_bytes(json.loads(evidence_bytes(brought.document)))


def test_what_a_patch_changed_is_no_part_of_a_document(tmp_path: Path, store: CandidateStore) -> None:
    """It can be as long as whoever made it likes."""
    empty = store.put(b"")
    before = Tree.of([])
    after = Tree.of([TreeEntry.file(f"{number}{chr(34) * 200}", empty, 0) for number in range(500)])
    capture = {"pristine": store.save(before), "tree": store.save(after)}
    delta = delta_between(before, after)
    made = CandidateArtifact("t", CandidateKind.PATCH, patch="", delta=delta, metadata={"capture": capture})
    told = produced(Production(made), store)
    assert len(json.dumps(told.document)) < 5000
    came = production_from(over_the_wire(told.document), store, 100).candidate
    assert came == made
    order = verify_order(task(tmp_path, "repo_patch"), 1, made, b"", store)
    assert len(json.dumps(order.document)) < 5000


def test_a_patch_that_names_other_trees_is_refused(store: CandidateStore) -> None:
    made = candidate(CandidateKind.PATCH, store)
    document = over_the_wire(produced(Production(made), store).document)
    other = store.save(Tree.of([]))
    for name in ("pristine", "tree"):
        changed = over_the_wire(document)
        changed["candidate"]["metadata"]["capture"][name] = other
        with pytest.raises(ValueError, match="not what it names"):
            production_from(changed, store, 100)
    document["candidate"]["delta"] = None
    came = production_from(document, store, 100).candidate
    assert came is not None
    assert came.digest != made.digest


@pytest.mark.parametrize(
    ("names", "fits"),
    [(["egress.json"], True), (["egress.json", "trajectory.json"], False), (["other.json"], False)],
)
def test_evidence_is_what_attempts_keep_and_bounded_in_all(names: list[str], fits: bool, store: CandidateStore) -> None:
    """Also where many names stand for one content, which is sent once."""
    document = over_the_wire(produced(Production(None), store).document)
    document["evidence"] = dict.fromkeys(names, store.put(b"x" * 60))
    if fits:
        assert production_from(document, store, 100).evidence == {"egress.json": b"x" * 60}
    else:
        with pytest.raises(ValueError, match=r"more than|nobody keeps"):
            production_from(document, store, 100)


def test_what_an_attempt_can_bring_depends_on_what_it_makes() -> None:
    assert most_brought(CandidateKind.TEXT) == most_brought(CandidateKind.CODE)
    assert most_brought(CandidateKind.TEXT).size == documents.MAX_EVIDENCE
    assert most_brought(CandidateKind.TEXT).items < 10
    assert most_brought(CandidateKind.PATCH).size > most_brought(CandidateKind.WORKSPACE).size > 8 * 2**30


def test_more_evidence_than_is_taken_is_the_candidates_failure(
    store: CandidateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_EVIDENCE", 100)
    produced(Production(None, evidence={"egress.json": b"x" * 100}), store)
    with pytest.raises(CandidateError) as caught:
        produced(Production(None, evidence={"egress.json": b"x" * 60, "trajectory.json": b"y" * 41}), store)
    assert caught.value.reason is FailureReason.CANDIDATE_TOO_LARGE


def test_a_failure_arrives_as_it_was(store: CandidateStore) -> None:
    made = Production(None, failure=CandidateError(FailureReason.PRODUCER_TIMEOUT, "too slow"))
    came = production_from(over_the_wire(produced(made, store).document), store, 100)
    assert came.candidate is None
    assert came.failure is not None
    assert (came.failure.reason, str(came.failure)) == (FailureReason.PRODUCER_TIMEOUT, "too slow")


@pytest.mark.parametrize("family", [name for name in VALID_ROWS if FAMILIES[name].executes])
def test_an_order_to_verify_brings_the_whole_task(family: str, tmp_path: Path, store: CandidateStore) -> None:
    made = task(tmp_path, family)
    work = candidate(FAMILIES[family].candidate, store)
    brought = verify_order(made, 3, work, b"\1\2", store)
    if work.delta is not None:
        assert Item("b", store.put(delta_bytes(work.delta))) in brought.items
    came = verify_order_from(over_the_wire(brought.document), place, store)
    assert (came.attempt, came.seed, came.candidate) == (3, b"\1\2", work)
    for component in Component:
        there, here = came.task.view_for(component), made.view_for(component)
        assert there.values() == here.values()
        assert [(f.path, f.mount, f.digest, f.read_only) for f in there.files()] == [
            (f.path, f.mount, f.digest, f.read_only) for f in here.files()
        ]
    assert came.task.environment == made.environment


@pytest.mark.parametrize("family", list(VALID_ROWS))
def test_an_order_to_produce_is_the_agents_view(family: str, tmp_path: Path, store: CandidateStore) -> None:
    made = task(tmp_path, family)
    request = request_for(made, store)
    came = producer_request(produce_order(request), place, store)
    assert came.payload == json.loads(json.dumps(dict(request.payload)))
    assert came.view.values() == request.view.values()
    assert (came.task_id, came.attempt, came.kind) == (request.task_id, request.attempt, request.kind)


def test_an_order_to_produce_is_made_of_nothing_else(tmp_path: Path, store: CandidateStore) -> None:
    made = task(tmp_path, "terminal_task")
    with pytest.raises(AssertionError):
        produce_order(request_for(made, store, Component.EVALUATOR))


def request_for(
    made: SecureBenchTask, store: CandidateStore, component: Component = Component.AGENT
) -> ProducerRequest:
    return ProducerRequest(
        task_id=made.id,
        attempt=1,
        kind=FAMILIES[made.task_type].candidate,
        payload=made.agent_payload(),
        view=made.view_for(component),
        environment=made.environment,
        store=store,
    )


JUDGED = Judged(
    Status.FAILED,
    passed=False,
    score=0.0,
    assurance=Assurance.ISOLATED,
    failure_reason=FailureReason.TESTS_FAILED,
    message="m",
    stdout="o",
    stderr="e",
    metadata={"a": 1},
    controls=({"c": 1},),
    usage={"u": 1.5},
)


@pytest.mark.parametrize("judged", [JUDGED, Judged(Status.PENDING)])
def test_a_verdict_arrives_as_it_was(judged: Judged) -> None:
    assert judged_from(over_the_wire({**judged_json(judged), "nonce": "n"})) == judged


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "superb"),
        ("status", "passed"),
        ("status", "pending"),
        ("status", "error"),
        ("status", None),
        ("passed", 1),
        ("passed", True),
        ("passed", None),
        ("score", None),
        ("score", -1.0),
        ("passed", "yes"),
        ("score", "1"),
        ("score", True),
        ("assurance", "total"),
        ("failure_reason", "bad luck"),
        ("metadata", 7),
        ("controls", None),
        ("controls", [1]),
        ("usage", "x"),
    ],
)
def test_a_verdict_that_is_none_is_refused(name: str, value: Any) -> None:
    data = json.dumps({**judged_json(JUDGED), name: value}).encode()
    with pytest.raises(IntegrityError, match="not a verdict of ours"):
        decoded("a verdict", data, judged_from)


def test_a_document_with_any_part_missing_or_of_another_kind_is_refused(tmp_path: Path, store: CandidateStore) -> None:
    made = task(tmp_path, "terminal_task")
    produce = json.loads(produce_order(request_for(made, store)))
    verify = verify_order(made, 1, candidate(CandidateKind.WORKSPACE, store), b"", store).document
    for document, build in (
        (produce, lambda data: producer_request(data, place, store)),
        (verify, lambda data: decoded("an order", data, lambda order: verify_order_from(order, place, store))),
    ):
        build(json.dumps(document).encode())
        for name in document:
            with pytest.raises(IntegrityError):
                build(json.dumps({key: part for key, part in document.items() if key != name}).encode())
        for broken in (b"", b"[]", b"7", b"\xff", b"{", b"[" * 10_000):
            with pytest.raises(IntegrityError):
                build(broken)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", ""])
def test_files_whose_path_leads_elsewhere_are_refused(path: str, tmp_path: Path, store: CandidateStore) -> None:
    order = json.loads(produce_order(request_for(task(tmp_path, "terminal_task"), store)))
    (resource,) = (resource for resource in order["view"] if resource["files"])
    resource["files"][0]["path"] = path
    with pytest.raises(IntegrityError):
        producer_request(json.dumps(order).encode(), place, store)


@pytest.mark.parametrize("text", ["plain", "é", "\ud83d", "\ud83d\ude00", "\ud83d\ud83d\ude00", "\\ud83d\\ude00"])
def test_what_a_node_signs_is_what_the_head_reads(text: str) -> None:
    """Also where two halves of a character stand side by side, which are one when they are read."""
    document = {"stdout": text}
    assert evidence_bytes(over_the_wire(document)) == evidence_bytes(document)
