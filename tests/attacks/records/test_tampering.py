"""Whatever is changed in a sealed run is found, with the file, the line and what is wrong. The run as it is verifies."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.records.sealed_runs import edited, key_named, line_about, lines_of, verified

from securebench.audit.attacks.i_results.changes import EDITS, forged, payload_edited, rewritten
from securebench.records import seal

RECORDS, CHECKPOINTS, SEAL, SUMMARY, PLAN = (
    "candidates.jsonl", "checkpoints.jsonl", "seal.json", "summary.json", "plan.json",
)  # fmt: skip


def test_untouched_run_verifies(run: Path, keys: Path) -> None:
    result = verified(run, keys)
    assert [str(finding) for finding in result.findings] == []
    assert result.ok
    assert result.key is not None
    assert (result.key.name, result.key.standing) == ("maker", "trusted")
    assert result.facts["status"] == "complete"
    assert (result.facts["planned"], result.facts["recorded"], result.facts["records"]) == (10, 10, 10)
    assert result.facts["checkpoints"] >= 2, "the run was too fast for checkpoints; the attacks on them need some"
    assert len({record["task_id"] for record in lines_of(run) if record["evidence"]}) == 1


def test_run_verifies_wherever_it_lies(run: Path, keys: Path, tmp_path: Path) -> None:
    run.rename(tmp_path / "moved")
    assert verified(tmp_path / "moved", keys).ok


Place = tuple[str, str]
"""Where something is found, and the words for it."""

EDITED: dict[str, Place] = {
    "verdict-edited": (
        f"{RECORDS}:3",
        "does not follow line 2: it was written behind a line with the digest .* that line was changed or dropped",
    ),
    "first-dropped": (f"{RECORDS}:1", "does not follow plan.json: it was written behind"),
    "one-dropped": (f"{RECORDS}:5", "does not follow line 4: it was written behind a line with the digest"),
    "last-dropped": (SEAL, "was made over 10 records; candidates.jsonl has 9: records are gone"),
    "one-repeated": (
        f"{RECORDS}:3",
        "does not follow line 2: it was written behind line 1; lines were inserted, repeated or moved",
    ),
    "repeated-at-the-end": (f"{RECORDS}:11", "task 't1' attempt 1 is recorded twice: also on line 1"),
    "places-changed": (f"{RECORDS}:2", "does not follow line 1"),
    "one-put-in": (f"{RECORDS}:4", "task 't3' attempt 7 is not in the plan, which has 2 attempts of it"),
    "unplanned-task": (f"{RECORDS}:11", "task 'easy' is not in the plan"),
    "chained-behind-the-seal": (
        SEAL,
        "was made over 10 records; candidates.jsonl has 11: records were added since",
    ),
    "cut-in-a-line": (f"{RECORDS}:10", r"ends in \d+ bytes without a line end"),
    "cut-to-nothing": (SEAL, "was made over 10 records; candidates.jsonl has 0: records are gone"),
    "answer-replaced": (
        f"{RECORDS}:1",
        "the candidate has the digest sha256:.*, but digests.candidate says sha256:",
    ),
    "contradiction": (f"{RECORDS}:1", "says passed and not passed"),
    "score-beyond-all": (f"{RECORDS}:1", "not a record of ours; wrong or missing: score"),
}
"""The edits of the attack suite, with what is said of each."""

LINES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str, str]] = {
    **{name: (EDITS[name], *place) for name, place in EDITED.items()},
    "the last record is edited": (
        lambda lines: [*lines[:-1], lines[-1].replace(b'"record_version":1', b'"record_version": 1')],
        f"{RECORDS}:10",
        "is not the last record that was sealed: it was changed since",
    ),
    "white space is added": (
        lambda lines: [lines[0].replace(b'"record_version":1', b'"record_version": 1'), *lines[1:]],
        f"{RECORDS}:2",
        "does not follow line 1",
    ),
    "a line is not JSON": (lambda lines: [*lines[:2], b"nonsense\n", *lines[2:]], f"{RECORDS}:3", "not JSON"),
    "a line is an array": (lambda lines: [*lines[:2], b"[]\n", *lines[2:]], f"{RECORDS}:3", "expected an object"),
    "a line is nested without end": (
        lambda lines: [*lines, b"[" * 100_000 + b"\n"],
        f"{RECORDS}:11",
        "nested too deeply",
    ),
    "a key comes twice": (
        lambda lines: [lines[0].replace(b"{", b'{"passed":true,', 1), *lines[1:]],
        f"{RECORDS}:1",
        "duplicate key 'passed'",
    ),
    "a record says another pack": (
        lambda lines: [
            rewritten(lines[0], {"digests": json.loads(lines[0])["digests"] | {"pack": "sha256:0"}}),
            *lines[1:],
        ],
        f"{RECORDS}:1",
        "task 't1' attempt 1: pack digest is 'sha256:0', the plan says 'sha256:",
    ),
}


def test_every_edit_of_the_attack_suite_has_its_words() -> None:
    assert EDITED.keys() == EDITS.keys()


@pytest.mark.parametrize("attack", LINES)
def test_changed_records_are_found(run: Path, keys: Path, attack: str) -> None:
    change, place, message = LINES[attack]
    edited(RECORDS, change)(run)
    _found(verified(run, keys), place, message)


def _found(result: Any, place: str, message: str) -> None:
    assert not result.ok
    found = [(finding.place, finding.message) for finding in result.errors]
    assert any(at == place and re.search(message, text) for at, text in found), "\n".join(map(str, result.errors))


def test_record_of_another_run_of_the_same_name_is_found(run: Path, other: Path, keys: Path) -> None:
    foreign = (other / RECORDS).read_bytes().splitlines(keepends=True)
    assert verified(other, keys).ok
    edited(RECORDS, lambda lines: [*foreign[:2], *lines[2:]])(run)
    result = verified(run, keys)
    _found(result, f"{RECORDS}:1", "does not follow plan.json: .* the record is of another run")
    _found(result, f"{RECORDS}:1", "pack digest is")
    _found(result, f"{RECORDS}:3", "does not follow line 2")


def test_all_of_another_run_under_this_plan_is_found(run: Path, other: Path, keys: Path) -> None:
    for name in (RECORDS, SEAL, SUMMARY, CHECKPOINTS):
        shutil.copy(other / name, run / name)
    result = verified(run, keys)
    _found(result, f"{RECORDS}:1", "does not follow plan.json")
    _found(result, SEAL, "is about the plan sha256:.*; this one is sha256:")
    _found(result, f"{CHECKPOINTS}:1", "is about the plan")


# Stored contents


def _spoil(run: Path, text: bytes) -> None:
    """Change a content where it is stored, without changing any length."""
    done = 0
    for path in (run / "candidates").rglob("*"):
        if path.is_file() and text in (data := path.read_bytes()):
            path.chmod(0o644)
            path.write_bytes(data.replace(text, text.swapcase()))
            done += 1
    assert done


@pytest.mark.parametrize(
    "text, task, message",
    [
        (b"made by the agent", "w1", "the candidate, file 'made.txt': content sha256:.* was changed"),
        (b"print('broken')\nx", "p1", "the candidate, file 'src/app.py': content sha256:.* was changed"),
        (b"allowed", "t3", "evidence 'egress.json': content sha256:.* was changed"),
    ],
)
def test_replaced_content_is_found(run: Path, keys: Path, text: bytes, task: str, message: str) -> None:
    if text == b"allowed":
        text = b'"egress":'
    _spoil(run, text)
    _found(verified(run, keys), f"{RECORDS}:{line_about(run, task)}", message)


def test_replaced_tree_is_found(run: Path, keys: Path) -> None:
    workspace = next(record["candidate_workspace"] for record in lines_of(run) if record["candidate_workspace"])
    path = run / "candidates" / "trees" / workspace[7:9] / f"{workspace[9:]}.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"made.txt", b"fake.txt"))
    _found(verified(run, keys), f"{RECORDS}:{line_about(run, 'w1')}", "the candidate: tree sha256:.* was changed")


def test_removed_contents_are_found(run: Path, keys: Path) -> None:
    shutil.rmtree(run / "candidates")
    result = verified(run, keys)
    for task, message in (("w1", "tree sha256:.* cannot be read"), ("t3", "content sha256:.* is not in the")):
        _found(result, f"{RECORDS}:{line_about(run, task)}", message)


# Summary and plan


def test_replaced_summary_is_found(run: Path, keys: Path) -> None:
    value = json.loads((run / SUMMARY).read_bytes())
    (run / SUMMARY).write_text(json.dumps(value | {"passed": 10, "failed": 0, "score": 1.0}))
    result = verified(run, keys)
    _found(result, SUMMARY, "passed is 10; counted from the records it is 8")
    _found(result, SUMMARY, "score is 1.0; counted from the records it is 0.8")
    _found(result, SUMMARY, "is not the file that was sealed")


def test_summary_with_the_same_numbers_in_other_bytes_is_found(run: Path, keys: Path) -> None:
    (run / SUMMARY).write_text(json.dumps(json.loads((run / SUMMARY).read_bytes()), indent=2))
    result = verified(run, keys)
    assert [str(finding) for finding in result.errors] == [
        "summary.json: is not the file that was sealed: it was changed or replaced since"
    ]


@pytest.mark.parametrize("name", [SUMMARY, PLAN, SEAL])
def test_removed_file_is_found(run: Path, keys: Path, name: str) -> None:
    (run / name).unlink()
    words = {SUMMARY: "there is no summary", PLAN: "there is no plan", SEAL: "the run is not sealed"}
    _found(verified(run, keys), name, words[name])


def test_removed_seal_says_how_far_checkpoints_reach(run: Path, keys: Path) -> None:
    (run / SEAL).unlink()
    result = verified(run, keys)
    reach = max(
        seal.open_statement(line, "x").predicate.chain.records for line in (run / CHECKPOINTS).read_bytes().splitlines()
    )
    assert reach
    _found(result, SEAL, f"checkpoints cover its first {reach} records, and what came after could have been dropped")
    assert any("it has no valid seal" in text for text in result.not_proven)


def _plan(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        from securebench._canonical import canonical_bytes

        value = json.loads((run / PLAN).read_bytes())
        change(value)
        (run / PLAN).write_bytes(canonical_bytes(value))

    return apply


@pytest.mark.parametrize(
    "change, place, message",
    [
        (lambda plan: plan["tasks"].pop(1), f"{RECORDS}:1", "does not follow plan.json"),
        (lambda plan: plan["tasks"].pop(1), f"{RECORDS}:2", "task 't2' is not in the plan"),
        (lambda plan: plan.update(attempts=1), SEAL, "is about the plan sha256:"),
        (lambda plan: plan.update(attempts=3), SEAL, "says complete, but 5 planned attempts have no record: 't1'"),
        (lambda plan: plan["limits"].update(more=1), f"{RECORDS}:1", "does not follow plan.json"),
        (lambda plan: plan.update(extra=1), PLAN, "not a plan of ours: extra: Extra inputs are not permitted"),
        (lambda plan: plan["tasks"].append(plan["tasks"][0]), PLAN, "a task is planned twice"),
    ],
)
def test_replaced_plan_is_found(run: Path, keys: Path, change: Any, place: str, message: str) -> None:
    _plan(change)(run)
    _found(verified(run, keys), place, message)


def test_plan_in_other_bytes_is_found(run: Path, keys: Path) -> None:
    (run / PLAN).write_text(json.dumps(json.loads((run / PLAN).read_bytes()), indent=1))
    _found(verified(run, keys), PLAN, "not in the canonical form")


# Seal and checkpoints


def test_edited_seal_is_found(run: Path, keys: Path) -> None:
    path = run / SEAL
    path.write_bytes(payload_edited(path.read_bytes(), lambda value: value["predicate"]["counts"].update(passed=10)))
    _found(
        verified(run, keys), SEAL, "the signature does not hold: it was changed after ed25519:[0-9a-f]{64} signed it"
    )


def test_edited_checkpoint_is_found(run: Path, keys: Path) -> None:
    def change(lines: list[bytes]) -> list[bytes]:
        edit: Callable[[dict[str, Any]], object] = lambda value: value["predicate"]["chain"].update(records=1)  # noqa: E731
        return [lines[0], payload_edited(lines[1], edit), *lines[2:]]

    edited(CHECKPOINTS, change)(run)
    _found(verified(run, keys), f"{CHECKPOINTS}:2", "the signature does not hold")


def test_checkpoints_in_another_order_are_found(run: Path, keys: Path) -> None:
    edited(CHECKPOINTS, lambda lines: lines[::-1])(run)
    result = verified(run, keys)
    _found(result, f"{CHECKPOINTS}:2", "covers fewer records than the checkpoint before it")


def test_checkpoint_in_place_of_the_seal_is_found(run: Path, keys: Path) -> None:
    (run / SEAL).write_bytes((run / CHECKPOINTS).read_bytes().splitlines()[0])
    _found(verified(run, keys), SEAL, "is a checkpoint and not the seal")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"payload":"!","payloadType":"x","signatures":[]}'])
def test_seal_that_is_none_is_found(run: Path, keys: Path, content: bytes) -> None:
    (run / SEAL).write_bytes(content)
    assert any(finding.file == SEAL for finding in verified(run, keys).errors)


def test_resealed_run_contradicts_its_checkpoints(run: Path, keys: Path) -> None:
    forged(run, key_named("forger", keys))
    result = verified(run, keys)
    _found(result, f"{CHECKPOINTS}:3", "covers the first .* records as they were at 2.*the file no longer begins with")
    _found(result, f"{CHECKPOINTS}:1", "which nobody vouches for: the run was sealed again")


def test_resealed_run_without_checkpoints_is_known_by_its_key_alone(run: Path, keys: Path) -> None:
    forged(run, key_named("forger", keys))
    (run / CHECKPOINTS).unlink()
    maker, forger = key_named("maker", keys).id, key_named("forger", keys).id
    _found(verified(run, keys, maker), SEAL, f"is signed by {forger}; expected {maker}: it was made by somebody else")
    # Without knowing whose run it must be, nothing can be off; then that is said.
    unknown = verified(run, keys)
    assert unknown.ok
    assert unknown.key is not None
    assert unknown.key.standing == "unknown"
    assert f"who made this run: {forger} is not among the keys you trust" in unknown.not_proven


def test_maker_cannot_be_told_from_an_honest_one(run: Path, keys: Path) -> None:
    """The control that keeps the claim honest: who holds the key can make any run up, and verify says so."""
    forged(run, key_named("maker", keys))
    (run / CHECKPOINTS).unlink()
    result = verified(run, keys, key_named("maker", keys).id)
    assert result.ok
    assert any("that whoever ran it was honest" in text for text in result.not_proven)


@pytest.mark.parametrize("name", [RECORDS, CHECKPOINTS, SEAL, SUMMARY, PLAN])
@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
def test_file_that_is_none_does_not_hold_us_up(run: Path, keys: Path, name: str, kind: str) -> None:
    import os

    path = run / name
    path.unlink()
    {
        "fifo": lambda: os.mkfifo(path),
        "directory": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
    }[kind]()
    result = verified(run, keys)
    assert any(finding.file == name for finding in result.errors), result.findings


@pytest.mark.parametrize("name", [RECORDS, CHECKPOINTS, SEAL, SUMMARY, PLAN])
def test_any_changed_byte_of_a_sealed_file_is_found(run: Path, keys: Path, name: str) -> None:
    rng, path = random.Random(name), run / name
    data = path.read_bytes()
    size = len(data) - (name in {CHECKPOINTS, SEAL})  # whether these end in a line end says nothing
    for _ in range(60):
        changed = bytearray(data)
        changed[rng.randrange(size)] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        assert not verified(run, keys).ok, bytes(changed)
        position = rng.randrange(size)
        path.write_bytes(data[:position] + data[position + 1 :])
        assert not verified(run, keys).ok, position
    path.write_bytes(data)
    assert verified(run, keys).ok
