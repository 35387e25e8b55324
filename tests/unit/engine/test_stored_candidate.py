"""Candidates from records and a store: what was judged comes back, and nothing that was touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from securebench._canonical import digest_bytes
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree, TreeEntry, delta_between
from securebench.engine.stored_candidate import PRODUCTION, Rebuilding, not_judged
from securebench.errors import FailureReason, IntegrityError
from securebench.families.base import CandidateKind
from securebench.records.shape import RecordShape


def record(candidate: str | None = None, **fields: Any) -> RecordShape:
    values: dict[str, Any] = {
        "record_version": 1,
        "run_id": "r",
        "task_id": "t",
        "attempt": 1,
        "benchmark_id": "b",
        "task_type": "short_answer",
        "verification_status": "passed",
        "passed": True,
        "score": 1.0,
        "failure_reason": None,
        "assurance": "pure",
        "candidate_text": None,
        "candidate_patch": None,
        "candidate_workspace": None,
        "producer_metadata": {},
        "evidence": {},
        "digests": {"pack": "p", "config": "c", "row": "w", "securebench": "s", "candidate": candidate},
        "previous": "",
    }
    return RecordShape.model_validate(values | fields)


@pytest.fixture
def store(tmp_path: Path) -> CandidateStore:
    return CandidateStore(tmp_path / "store")


def tree(store: CandidateStore, files: dict[str, bytes]) -> Tree:
    made = Tree.of(TreeEntry.file(path, store.put(data), len(data)) for path, data in files.items())
    store.save(made)
    return made


def captured(before: Tree, after: Tree, **capture: Any) -> RecordShape:
    stated = delta_between(before, after).digest
    found = {"pristine": before.digest, "tree": after.digest, "delta": stated} | capture
    return record(stated, candidate_patch="a rendering", producer_metadata={"candidate": {"capture": found}})


@pytest.mark.parametrize("kind", [CandidateKind.TEXT, CandidateKind.CODE])
@pytest.mark.parametrize("text", ["Answer: 42", "", "\ud800 half a character"])
def test_text_comes_back(store: CandidateStore, kind: CandidateKind, text: str) -> None:
    digest = digest_bytes(text.encode("utf-8", "surrogatepass"))
    candidate = Rebuilding(store).candidate(record(digest, candidate_text=text), kind)
    assert (candidate.text, candidate.digest, candidate.kind) == (text, digest, kind)


def test_workspace_comes_back(store: CandidateStore) -> None:
    made = tree(store, {"a.txt": b"a", "b.txt": b"bb"})
    candidate = Rebuilding(store).candidate(
        record(made.digest, candidate_workspace=made.digest), CandidateKind.WORKSPACE
    )
    assert (candidate.workspace, candidate.size) == (made.digest, 3)


def test_patch_comes_back_as_the_difference_of_its_trees(store: CandidateStore) -> None:
    before, after = tree(store, {"a.txt": b"a", "b.txt": b"b"}), tree(store, {"a.txt": b"other", "c.txt": b"c"})
    candidate = Rebuilding(store).candidate(captured(before, after), CandidateKind.PATCH)
    assert candidate.delta == delta_between(before, after)
    assert candidate.patch == "a rendering"


def test_patch_that_came_as_text_comes_back_as_text(store: CandidateStore) -> None:
    shape = record(digest_bytes(b"--- a"), candidate_patch="--- a")
    candidate = Rebuilding(store).candidate(shape, CandidateKind.PATCH)
    assert (candidate.patch, candidate.delta) == ("--- a", None)


def test_other_trees_than_were_judged_are_refused(store: CandidateStore) -> None:
    before, after, other = (tree(store, {"a.txt": data}) for data in (b"a", b"b", b"c"))
    for shape in (captured(before, after, tree=other.digest), captured(before, after, pristine=other.digest)):
        with pytest.raises(IntegrityError, match="stored trees differ"):
            Rebuilding(store).candidate(shape, CandidateKind.PATCH)


@pytest.mark.parametrize("capture", [{"tree": None}, {"pristine": 7}, {"tree": "../../x"}])
def test_trees_that_are_not_named_are_refused(store: CandidateStore, capture: dict[str, Any]) -> None:
    before, after = tree(store, {"a.txt": b"a"}), tree(store, {"a.txt": b"b"})
    with pytest.raises(IntegrityError):
        Rebuilding(store).candidate(captured(before, after, **capture), CandidateKind.PATCH)


@pytest.mark.parametrize(
    "shape",
    [
        record(digest_bytes(b"41"), candidate_text="42"),
        record(None, candidate_text="42"),
        record(digest_bytes(b"42"), candidate_text="42", candidate_patch="42"),
        record("sha256:" + 64 * "0", candidate_workspace="sha256:" + 64 * "0"),
    ],
    ids=["another text", "no digest", "two candidates", "no such tree"],
)
def test_what_contradicts_itself_is_refused(store: CandidateStore, shape: RecordShape) -> None:
    with pytest.raises(IntegrityError, match="candidate"):
        Rebuilding(store).candidate(shape, CandidateKind.TEXT)


def test_a_task_that_collects_something_else_now_is_named(store: CandidateStore) -> None:
    with pytest.raises(IntegrityError, match="collects a workspace now"):
        Rebuilding(store).candidate(record(digest_bytes(b"42"), candidate_text="42"), CandidateKind.WORKSPACE)


@pytest.mark.parametrize("reason", sorted(PRODUCTION))
def test_failed_production_stays_failed_whatever_it_left(reason: str) -> None:
    verdict = {"verification_status": "failed", "passed": False, "score": 0.0, "failure_reason": str(reason)}
    assert reason in (not_judged(record(digest_bytes(b"42"), candidate_text="42", **verdict)) or "")


def test_what_a_verifier_saw_is_judged_again() -> None:
    verdict = {"verification_status": "failed", "passed": False, "score": 0.0}
    for reason in set(FailureReason) - PRODUCTION:
        assert not_judged(record("x", candidate_text="42", failure_reason=str(reason), **verdict)) is None
    assert not_judged(record()) == "nothing was produced"
    fault = {"verification_status": "error", "passed": None, "score": None}
    assert not_judged(record("x", candidate_text="42", **fault)) is None
