"""Runs that are in order and yet not plain: interrupted, continued, filtered, with faults of the host, of nobody's key.
Verify says what they are and what they do not prove."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.records.sealed_runs import key_named, verified
from tests.attacks.records.sealed_runs import lines_of as lines_as_written

from securebench._canonical import digest_bytes
from securebench.errors import ConfigError
from securebench.evidence.verify import Verification, find_runs
from securebench.records import keyless
from securebench.records.keys import SigningKey, load_signing_key
from securebench.records.plan import Filters, Plan, load_plan
from securebench.records.plan_break import break_plan
from securebench.records.seal import Progress, checkpoint, keep_earlier_seal, seal_run
from securebench.records.seed import commit
from securebench.records.store import ChainState
from securebench.records.summary import summarize

SEED = b"seed" * 8
FAULT = {
    "verification_status": "error", "passed": None, "score": None, "assurance": None, "failure_reason": None,
}  # fmt: skip


def lines_of(run: Path) -> list[dict[str, Any]]:
    """In the plan's order; judging overlaps, so lines may have been written in another."""
    places = {task.id: place for place, task in enumerate(load_plan(run)[0].tasks)}
    return sorted(lines_as_written(run), key=lambda record: (record["attempt"], places[record["task_id"]]))


class Maker:
    """Rebuilds a run from real records with our own functions, as an engine would have written it."""

    def __init__(self, source: Path, target: Path, key: SigningKey, **changes: Any) -> None:
        self.run, self.key = target, key
        target.mkdir()
        shutil.copytree(source / "candidates", target / "candidates")
        plan = load_plan(source)[0].model_copy(update={"seed_commitment": commit(SEED), **changes})
        self.plan = Plan.model_validate_json(plan.encode())
        (target / "plan.json").write_bytes(self.plan.encode())
        self.lines: list[bytes] = []
        self.records: list[dict[str, Any]] = []
        self.first = self.plan

    @property
    def state(self) -> ChainState:
        head = digest_bytes(self.lines[-1]) if self.lines else self.first.digest
        data = b"".join(self.lines)
        return ChainState(head, len(self.lines), len(data), digest_bytes(data)[7:])

    def add(self, *records: dict[str, Any]) -> None:
        for record in records:
            value = {key: part for key, part in record.items() if key != "previous"} | {"previous": self.state.head}
            self.lines.append((json.dumps(value) + "\n").encode())
            self.records.append(value)
        (self.run / "candidates.jsonl").write_bytes(b"".join(self.lines))

    def progress(self) -> Progress:
        counts: dict[str, int] = {}
        for record in self.records:
            if "task_id" in record:
                status = record["verification_status"]
                counts[status] = counts.get(status, 0) + 1
        return Progress(
            self.plan.run_id, self.first.digest, self.state, counts, SEED, "2026-01-01T00:00:00Z",
            "2026-01-01T01:00:00Z", self.plan.securebench,
        )  # fmt: skip

    def seal(self, status: Any = "complete", key: SigningKey | None = None) -> None:
        last = {(record["task_id"], record["attempt"]): record for record in self.records if "task_id" in record}
        summary = summarize(self.plan, last.values(), interrupted=status == "interrupted")
        (self.run / "summary.json").write_text(json.dumps(summary.as_json()))
        seal_run(self.run, self.progress(), status, key or self.key)


@pytest.fixture
def made(sealed: Path, tmp_path: Path, keys: Path) -> Callable[..., Maker]:
    return lambda **changes: Maker(sealed, tmp_path / "made", key_named("maker", keys), **changes)


def said(result: Verification, words: str) -> bool:
    return any(words in str(finding) for finding in result.notes)


def test_rebuilt_run_verifies(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker = made()
    maker.add(*lines_of(sealed))
    maker.seal()
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert not result.notes


def test_interrupted_run_is_in_order_up_to_there(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker = made()
    maker.add(*lines_of(sealed)[:7])
    maker.seal("interrupted")
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert (result.facts["status"], result.facts["recorded"], result.facts["planned"]) == ("interrupted", 7, 10)
    assert said(result, "the run was interrupted; 3 planned attempts have no record: 't3' attempt 2")
    assert "how the 3 planned attempts without a record would have come out" in result.not_proven


def test_interrupted_run_that_says_complete_is_found(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker = made()
    maker.add(*lines_of(sealed)[:7])
    maker.seal("complete")
    [error] = verified(maker.run, keys).errors
    assert "says complete, but 3 planned attempts have no record" in str(error)


def test_continued_run_keeps_its_former_seal(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker = made()
    maker.add(*lines_of(sealed)[:4])
    maker.seal("interrupted")
    keep_earlier_seal(maker.run)
    maker.add(*lines_of(sealed)[4:6])
    checkpoint(maker.run, maker.progress(), maker.key)
    maker.add(*lines_of(sealed)[6:])
    maker.seal()
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert result.facts["checkpoints"] == 2


def test_fault_of_the_host_that_was_tried_again_is_a_note(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker, records = made(), lines_of(sealed)
    maker.add(records[0] | FAULT, records[0] | FAULT, *records)
    maker.seal()
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert said(result, "candidates.jsonl:3: task 't1' attempt 1 was tried again: on line 2 the host had failed")
    assert (result.facts["records"], result.facts["recorded"], result.facts["errors"]) == (12, 10, 0)


def test_fault_that_stands_is_counted_and_said(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker, records = made(), lines_of(sealed)
    maker.add(records[0] | FAULT, *records[1:])
    maker.seal()
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert result.facts["errors"] == 1
    assert "how 1 attempts would have come out on which the host failed" in result.not_proven


@pytest.mark.parametrize("behind", [{}, FAULT])
def test_verdict_is_not_tried_again(
    made: Callable[..., Maker], sealed: Path, keys: Path, behind: dict[str, Any]
) -> None:
    """Otherwise a failed attempt could be rolled again until it passes."""
    maker, records = made(), lines_of(sealed)
    maker.add(records[0], records[0] | behind, *records[1:])
    maker.seal()
    messages = [str(error) for error in verified(maker.run, keys).errors]
    assert "candidates.jsonl:2: task 't1' attempt 1 is recorded twice: also on line 1" in messages


def test_filtered_run_is_no_score_on_the_benchmark(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    whole = load_plan(sealed)[0]
    maker = made(tasks=whole.tasks[:2], filters=Filters(limit=2))
    maker.add(*(record for record in lines_of(sealed) if record["task_id"] in {"t1", "t2"}))
    maker.seal()
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert result.facts["filtered"]
    assert "a score on the whole of tampering: only 2 tasks were chosen (limit 2)" in result.not_proven


def test_key_of_nobody_is_said(made: Callable[..., Maker], sealed: Path, keys: Path, tmp_path: Path) -> None:
    maker = made()
    maker.add(*lines_of(sealed)[:5])
    checkpoint(maker.run, maker.progress(), load_signing_key(None, tmp_path / "none", {}))
    maker.add(*lines_of(sealed)[5:])
    maker.seal(key=load_signing_key(None, tmp_path / "none", {}))
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert result.key is not None
    assert result.key.standing == "ephemeral"
    assert "who made this run: its key was made for it and belongs to nobody" in result.not_proven
    assert said(result, "the run was continued with another key")
    assert not verified(maker.run, keys, maker.key.id).ok


def test_seed_that_was_not_committed_to_is_found(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker = made(seed_commitment=commit(b"the committed one"))
    maker.add(*lines_of(sealed))
    maker.seal()
    messages = [str(error) for error in verified(maker.run, keys).errors]
    assert "seal.json: reveals another seed than the one the plan committed to" in messages


def test_changed_plan_is_said_and_holds_from_there_on(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker, records = made(), lines_of(sealed)
    maker.add(*records[:4])
    other = Plan.model_validate_json(maker.plan.model_copy(update={"config_digest": digest_bytes(b"new")}).encode())
    changed = maker.plan.differences(other)
    maker.add(break_plan(maker.run, other, changed, "2026-01-01T00:30:00Z"))
    maker.plan = other
    maker.add(*({**one, "digests": one["digests"] | {"config": digest_bytes(b"new")}} for one in records[4:]))
    maker.seal()
    result = verified(maker.run, keys)
    assert result.ok, result.errors
    assert said(result, "candidates.jsonl:5: the operator went on under another plan (plan-2.json): config_digest:")
    assert any("the plan was changed on line 5" in text for text in result.not_proven)
    (maker.run / "plan-2.json").write_bytes(maker.first.encode())
    messages = [str(error) for error in verified(maker.run, keys).errors]
    assert any("candidates.jsonl:5: changes the plan to plan-2.json with the digest" in text for text in messages)
    (maker.run / "plan-2.json").unlink()
    assert any("there is no plan" in str(error) for error in verified(maker.run, keys).errors)


def test_claim_of_walls_in_a_run_without_audit_is_found(made: Callable[..., Maker], sealed: Path, keys: Path) -> None:
    maker = made(unsafe=True)
    maker.add(*lines_of(sealed))
    maker.seal()
    result = verified(maker.run, keys)
    assert any("claims assurance 'pure' in a run without the audit" in str(error) for error in result.errors)
    assert any("the operator went without the audit" in text for text in result.not_proven)


def test_sigstore_bundle_must_be_about_the_same_seal(run: Path, keys: Path) -> None:
    (run / keyless.BUNDLE_FILE).write_text(json.dumps({"dsseEnvelope": {"payload": "YQ=="}}))
    [error] = verified(run, keys).errors
    assert str(error) == "seal.sigstore.json: is about another statement than the seal"


def test_thousands_of_bad_lines_are_counted_and_not_listed(run: Path, keys: Path) -> None:
    with (run / "candidates.jsonl").open("ab") as file:
        file.write(b"x\n" * 5000)
    result = verified(run, keys)
    assert len(result.findings) < 300
    assert result.unlisted > 4700


def test_runs_are_found_beneath_a_directory(sealed: Path, tmp_path: Path) -> None:
    for name in ("b", "a/x"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "seal.json").touch()
    (tmp_path / "a/x/inner").mkdir()
    (tmp_path / "a/x/inner/plan.json").touch()
    assert find_runs(tmp_path) == [tmp_path / "a/x", tmp_path / "b"]
    assert find_runs(tmp_path / "b") == [tmp_path / "b"]
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(ConfigError):
            find_runs(path)
