"""What a seal and its checkpoints state, against the records as they are: every difference is found."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

import pytest

from securebench._canonical import digest_bytes
from securebench.evidence.findings import Findings, Severity
from securebench.evidence.lines import Lines
from securebench.evidence.seals import (
    Checkpoint,
    KeyFacts,
    Standing,
    check_checkpoints,
    check_keys,
    check_seal,
)
from securebench.records.plan import BenchmarkName, Plan, PlannedTask
from securebench.records.seal import Predicate, Statement
from securebench.records.seed import commit
from securebench.records.store import ChainState

SEED = b"seed" * 8
KEY, OTHER_KEY = "ed25519:" + "1" * 64, "ed25519:" + "2" * 64
PLAN = Plan(
    run_id="r",
    created_at="2026-01-02T03:04:05.678Z",
    benchmark=BenchmarkName(id="b", version="1"),
    pack_digest=digest_bytes(b"pack"),
    tasks=(PlannedTask(id="a", task_type="short_answer", digest=digest_bytes(b"row")),),
    attempts=2,
    harness={"type": "command"},
    config_digest=digest_bytes(b"config"),
    securebench="0.1",
    seed_commitment=commit(SEED),
)
STATES = {count: ChainState(digest_bytes(b"%d" % count), count, count * 100, f"{count:064}") for count in (1, 2, 3)}
NOTHING = ChainState(PLAN.digest, 0, 0, hashlib.sha256().hexdigest())
SUMMARY = "c" * 64


def lines(count: int = 2, **changes: Any) -> Lines:
    marks = {STATES[number].size: STATES[number] for number in range(1, count + 1)}
    values: dict[str, Any] = {"state": STATES[count], "marks": marks, "counts": Counter(passed=count)}
    return Lines(PLAN, **(values | changes))


def statement(count: int = 2, subjects: dict[str, str] | None = None, **changes: Any) -> Statement:
    state = STATES[count] if count else NOTHING
    names = {"plan.json": PLAN.digest[7:], "candidates.jsonl": state.sha256, "summary.json": SUMMARY}
    values: dict[str, Any] = {
        "run_id": "r", "status": "complete", "plan": PLAN.digest,
        "chain": {"head": state.head, "records": state.count, "bytes": state.size}, "counts": {"passed": count},
        "seed": {"commitment": commit(SEED), "value": SEED.hex()}, "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T01:00:00Z", "securebench": "0.1", "key": {"id": KEY, "ephemeral": False},
    }  # fmt: skip
    return Statement(names if subjects is None else subjects, Predicate.model_validate(values | changes))


def sealed(seal: Statement, found: Lines, summary: str | None = SUMMARY) -> list[tuple[str, str]]:
    findings = Findings()
    check_seal(seal, found, PLAN, "'a' attempt 2", summary, findings)
    return [(str(one.severity), f"{one.place}: {one.message}") for one in findings.found]


def test_seal_of_these_records_finds_nothing() -> None:
    assert sealed(statement(), lines()) == []
    assert sealed(statement(), lines(), None) == []


WRONG_SEALS: list[tuple[dict[str, Any], str]] = [
    ({"run_id": "other"}, "is about the run other"),
    ({"plan": digest_bytes(b"other")}, "is about the plan sha256:"),
    ({"chain": {"head": STATES[2].head, "records": 1, "bytes": 200}}, "over 1 records; .*has 2: records were added"),
    ({"chain": {"head": STATES[2].head, "records": 3, "bytes": 200}}, "over 3 records; .*has 2: records are gone"),
    ({"chain": {"head": STATES[2].head, "records": 2, "bytes": 201}}, "over other bytes of candidates.jsonl"),
    ({"chain": {"head": STATES[1].head, "records": 2, "bytes": 200}}, "not the last record that was sealed"),
    ({"counts": {"passed": 1, "failed": 1}}, "counts 1 failed, 1 passed; the records are 2 passed"),
    ({"counts": {}}, "counts none; the records are 2 passed"),
    ({"securebench": "0.2"}, "made by SecureBench '0.2', the plan by '0.1'"),
    ({"seed": {"commitment": commit(SEED), "value": "00" * 32}}, "reveals another seed"),
    ({"seed": {"commitment": commit(SEED), "value": None}}, "does not reveal the run's seed"),
    ({"seed": {"commitment": "0" * 64, "value": SEED.hex()}}, "is about the seed commitment 000"),
    (
        {"subjects": {"plan.json": PLAN.digest[7:], "candidates.jsonl": STATES[2].sha256}},
        "is about candidates.jsonl, pl",
    ),
    (
        {"subjects": {"plan.json": "0" * 64, "candidates.jsonl": STATES[2].sha256, "summary.json": SUMMARY}},
        "is about the plan.json sha256:000",
    ),
    (
        {"subjects": {"plan.json": PLAN.digest[7:], "candidates.jsonl": "0" * 64, "summary.json": SUMMARY}},
        "over other bytes of candidates.jsonl",
    ),
    (
        {"subjects": {"plan.json": PLAN.digest[7:], "candidates.jsonl": STATES[2].sha256, "summary.json": "0" * 64}},
        "summary.json: is not the file that was sealed",
    ),
]


@pytest.mark.parametrize("changes, message", WRONG_SEALS, ids=[message for _, message in WRONG_SEALS])
def test_seal_that_differs_in_one_thing_is_an_error(changes: dict[str, Any], message: str) -> None:
    found = sealed(statement(**changes), lines())
    assert {severity for severity, _ in found} == {Severity.ERROR}
    assert len(found) == (2 if "last record" in message else 1)
    assert re.search(message, found[-1][1])


def test_missing_attempts_are_an_error_only_where_the_seal_says_complete() -> None:
    unsaid = {"commitment": commit(SEED), "value": None}
    ((severity, message),) = sealed(statement(), lines(missing=1))
    assert (severity, "says complete, but 1 planned attempts have no record: 'a' attempt 2" in message) == (
        "error",
        True,
    )
    ((severity, message),) = sealed(statement(status="interrupted", seed=unsaid), lines(missing=1))
    assert (severity, "the run was interrupted; 1 planned attempts" in message) == ("note", True)
    assert sealed(statement(status="interrupted", seed=unsaid), lines()) == []


def checked(*statements: Statement) -> list[str]:
    findings = Findings()
    check_checkpoints([Checkpoint(line, one) for line, one in enumerate(statements, 1)], lines(3), PLAN, findings)
    assert findings.ok == (not findings.found)
    return [str(one) for one in findings.found]


def test_checkpoints_of_a_beginning_find_nothing() -> None:
    assert checked(statement(0), statement(1), statement(1), statement(3)) == []


def test_checkpoint_of_another_beginning_is_found_by_its_line() -> None:
    for changes in (
        {"chain": {"head": STATES[2].head, "records": 1, "bytes": 100}},
        {"chain": {"head": STATES[1].head, "records": 1, "bytes": 101}},
        {"chain": {"head": STATES[1].head, "records": 2, "bytes": 100}},
    ):
        (found,) = checked(statement(0), statement(1, **changes))
        assert found.startswith("checkpoints.jsonl:2: covers the first")
    (found,) = checked(statement(0, chain={"head": PLAN.digest, "records": 1, "bytes": 0}))
    assert "no longer begins with them" in found


def test_checkpoint_that_was_moved_is_found_by_its_line() -> None:
    (found,) = checked(statement(1), statement(3), statement(2), statement(3))
    assert found.startswith("checkpoints.jsonl:3: covers fewer records")
    assert [place.split(": ")[0] for place in checked(statement(3), statement(2), statement(1))] == [
        "checkpoints.jsonl:2",
        "checkpoints.jsonl:3",
    ]


def signed_by(key: str, ephemeral: bool = False) -> Statement:
    return statement(key={"id": key, "ephemeral": ephemeral})


@pytest.mark.parametrize(
    "trusted, ephemeral, standing",
    [
        ({KEY: "me"}, False, Standing.TRUSTED),
        ({}, True, Standing.EPHEMERAL),
        ({OTHER_KEY: "x"}, False, Standing.UNKNOWN),
    ],
)
def test_standing_of_a_key_is_what_the_verifier_knows(
    trusted: dict[str, str], ephemeral: bool, standing: Standing
) -> None:
    facts = check_keys(signed_by(KEY, ephemeral), [], trusted, None, Findings())
    assert facts == KeyFacts(KEY, trusted.get(KEY), standing)


def test_seal_of_another_key_than_expected_is_an_error() -> None:
    for expected, count in ((None, 0), (KEY, 0), (OTHER_KEY, 1)):
        findings = Findings()
        check_keys(signed_by(KEY), [], {}, expected, findings)
        assert len(findings.found) == count
        assert findings.ok == (count == 0)


@pytest.mark.parametrize(
    "trusted, expected, ephemeral, severity",
    [
        ({}, None, False, "error"),
        ({OTHER_KEY: "x"}, None, False, "error"),
        ({KEY: "me"}, None, False, "note"),
        ({}, KEY, False, "note"),
        ({}, None, True, "note"),
    ],
)
def test_checkpoint_of_another_key_is_an_error_unless_somebody_vouches_for_the_seal(
    trusted: dict[str, str], expected: str | None, ephemeral: bool, severity: str
) -> None:
    findings = Findings()
    earlier = [Checkpoint(1, signed_by(KEY)), *(Checkpoint(line, signed_by(OTHER_KEY, ephemeral)) for line in (2, 3))]
    check_keys(signed_by(KEY), earlier, trusted, expected, findings)
    assert [(str(one.severity), one.line) for one in findings.found] == [(severity, 2)]
