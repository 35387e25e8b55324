"""What a seal and its checkpoints state, against the records as they are: every difference is found."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from securebench._canonical import digest_bytes
from securebench.evidence.findings import Findings, Severity
from securebench.evidence.lines import Lines
from securebench.evidence.seals import (
    SUBJECTS,
    Checkpoint,
    KeyFacts,
    Standing,
    check_checkpoints,
    check_keys,
    check_seal,
    read_checkpoints,
    read_seal,
)
from securebench.records.keys import SigningKey, load_signing_key
from securebench.records.plan import BenchmarkName, Plan, PlannedTask
from securebench.records.seal import CHECKPOINTS_FILE, SEAL_FILE, Predicate, Progress, Statement, checkpoint, seal_run
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
    assert found[0][1].startswith("summary.json: " if "summary" in message else "seal.json: ")
    assert found[-1][1].startswith("candidates.jsonl:2: ") == ("last record" in message)


def test_missing_attempts_are_an_error_only_where_the_seal_says_complete() -> None:
    unsaid = {"commitment": commit(SEED), "value": None}
    ((severity, message),) = sealed(statement(), lines(missing=1))
    assert (severity, "says complete, but 1 planned attempts have no record: 'a' attempt 2" in message) == (
        "error",
        True,
    )
    ((severity, message),) = sealed(statement(status="interrupted", seed=unsaid), lines(missing=1))
    assert severity == "note"
    assert message.startswith("seal.json: the run was interrupted; 1 planned attempts")
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


def test_checkpoint_of_another_run_is_found_by_its_line() -> None:
    (found,) = checked(statement(1), statement(2, run_id="other"))
    assert found == "checkpoints.jsonl:2: is about the run other; this one is r"


def test_statement_about_no_file_is_about_other_bytes() -> None:
    found = checked(statement(1, subjects={}))
    assert found[0].startswith("checkpoints.jsonl:1: is about the plan.json sha256:; this one is")
    assert found[1].startswith("checkpoints.jsonl:1: covers the first 1 records")


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
        assert [str(one) for one in findings.found] == [
            f"seal.json: is signed by {KEY}; expected {OTHER_KEY}: it was made by somebody else"
        ][:count]


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
    (found,) = findings.found
    assert (str(found.severity), found.place) == (severity, "checkpoints.jsonl:2")
    assert found.message.startswith(f"is signed by {OTHER_KEY}, the seal by {KEY}")


# -- read from the directory ---------------------------------------------------------------------------------------


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return load_signing_key(None, tmp_path / "none", {})


def progress(count: int) -> Progress:
    return Progress(
        "r", PLAN.digest, STATES[count], {"passed": count}, SEED, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "0.1"
    )


def test_checkpoints_whose_signature_does_not_hold_are_found_by_their_line(tmp_path: Path, key: SigningKey) -> None:
    findings = Findings()
    assert read_checkpoints(tmp_path, findings) == []
    for count in STATES:
        checkpoint(tmp_path, progress(count), key)
    first, second, third = (tmp_path / CHECKPOINTS_FILE).read_bytes().splitlines(keepends=True)
    changed = second.replace(b'"sig":"', b'"sig":"AAAA')
    (tmp_path / CHECKPOINTS_FILE).write_bytes(first + changed + third + b'{"payload')
    found = read_checkpoints(tmp_path, findings)
    assert [(one.line, one.statement.predicate.chain.records) for one in found] == [(1, 1), (3, 3)]
    assert [(str(one.severity), one.place) for one in findings.found] == [
        ("error", "checkpoints.jsonl:2"),
        ("note", "checkpoints.jsonl:4"),
    ]


def test_checkpoints_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINTS_FILE).mkdir()
    findings = Findings()
    assert read_checkpoints(tmp_path, findings) == []
    assert [(str(one.severity), one.place) for one in findings.found] == [("error", "checkpoints.jsonl")]


def test_seal_is_read_where_its_signature_holds(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "summary.json").write_bytes(b"{}")
    seal_run(tmp_path, progress(2), "complete", key)
    findings = Findings()
    seal = read_seal(tmp_path, [], findings)
    assert seal is not None
    assert (seal.predicate.chain.records, findings.found) == (2, [])
    assert seal.subjects.keys() == SUBJECTS
    path = tmp_path / SEAL_FILE
    path.write_bytes(path.read_bytes().replace(b'"sig":"', b'"sig":"AAAA'))
    assert read_seal(tmp_path, [], findings) is None
    assert [(str(one.severity), one.place) for one in findings.found] == [("error", "seal.json")]


def test_run_without_a_seal_is_vouched_for_as_far_as_checkpoints_go(tmp_path: Path) -> None:
    for checkpoints, words in (
        ([], "nobody vouches for any record"),
        ([Checkpoint(1, statement(3)), Checkpoint(2, statement(1))], "checkpoints cover its first 3 records"),
    ):
        findings = Findings()
        assert read_seal(tmp_path, checkpoints, findings) is None
        (found,) = findings.found
        assert str(found).startswith("seal.json: the run is not sealed")
        assert words in found.message
        assert not findings.ok


def test_checkpoint_in_the_place_of_the_seal_is_none(tmp_path: Path, key: SigningKey) -> None:
    checkpoint(tmp_path, progress(2), key)
    (tmp_path / CHECKPOINTS_FILE).rename(tmp_path / SEAL_FILE)
    findings = Findings()
    assert read_seal(tmp_path, [], findings) is None
    assert [str(one) for one in findings.found] == ["seal.json: is a checkpoint and not the seal of a run that ended"]
