"""What a record says of nodes is checked offline: by the rules on values, and by `securebench verify` on a real run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.world import World
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.packs import REMOVED, changed, row

from securebench.errors import IntegrityError
from securebench.records.keys import signing_key_from
from securebench.records.nodes import (
    Statement,
    certify,
    forget_enrolment,
    keep_enrolment,
    kept_enrolment,
    vouch,
    voucher_problems,
)
from securebench.records.shape import RecordShape

ENROLMENT, NODE, OTHER = (signing_key_from(bytes([number]) * 32) for number in (1, 2, 3))
Record = dict[str, Any]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A run of one task over one node; nothing of it lives any more."""
    need_bubblewrap()
    made = World(tmp_path_factory.mktemp("vouchers"))
    try:
        made.add("a")
        made.run(
            [changed(row("code_completion"), "eval.canonical_solution", REMOVED)], "printf 'def add(a, b): return 0'"
        )
    finally:
        made.end()
    return made


@pytest.fixture
def record(world: World) -> Record:
    (found,) = world.records()
    assert set(found["nodes"]) == {"produce", "verify"}
    return found


def problems(world: World, record: Record) -> list[str]:
    plan = json.loads((world.directory / "out" / "plan.json").read_text())
    return list(voucher_problems(RecordShape.model_validate(record), plan["executor"], executed=True))


def test_what_a_node_did_is_vouched_for(world: World, record: Record) -> None:
    assert problems(world, record) == []
    assert securebench("verify", world.directory / "out").code == 0


def _signed_by(key: Any) -> Callable[[Record], None]:
    def change(record: Record) -> None:
        voucher = record["nodes"]["verify"]
        voucher["signature"] = key.sign(Statement.model_validate(voucher["statement"]).encode()).hex()

    return change


def _restated(record: Record) -> None:
    """Somebody without any of the keys makes it passed, everywhere."""
    said = {"status": "passed", "passed": True, "score": 1.0, "failure_reason": None}
    record["nodes"]["verify"]["statement"] |= said
    record.update(verification_status="passed", passed=True, score=1.0, failure_reason=None)


def _another_runs(record: Record) -> None:
    """A node of another run, whose enrolment key certified it there."""
    voucher = record["nodes"]["verify"]
    node = certify("another run", voucher["node"]["name"], NODE.id, ENROLMENT)
    voucher["node"] = node.model_dump(mode="json")
    _signed_by(NODE)(record)


FORGERIES: dict[str, tuple[Callable[[Record], None], str]] = {
    "another key signed": (_signed_by(OTHER), "did not sign this"),
    "the statement was edited": (lambda r: r["nodes"]["verify"]["statement"].update(evidence="x"), "did not sign this"),
    "the verdict was edited": (lambda r: r.update(passed=True), "the node says passed False, the record says True"),
    "verdict and statement were edited": (_restated, "did not sign this"),
    "another run's certificate": (_another_runs, "never enrolled in this run"),
    "a key that nobody enrolled": (lambda r: r["nodes"]["verify"]["node"].update(key=OTHER.id), "never enrolled"),
    "another name": (lambda r: r["nodes"]["verify"]["node"].update(name="b"), "never enrolled"),
    "phases exchanged": (lambda r: r["nodes"].update(verify=r["nodes"]["produce"]), "another phase"),
    "not a voucher": (lambda r: r["nodes"].update(verify={}), "not the word of a node"),
    "another attempt's": (lambda r: r.update(attempt=2), "the node says attempt 1, the record says 2"),
    "passed and nobody vouches": (
        lambda r: (r["nodes"].pop("verify"), r.update(passed=True)),  # type: ignore[dict-item,return-value]
        "no node vouches for it",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_voucher_is_found(world: World, record: Record, forgery: str) -> None:
    change, finding = FORGERIES[forgery]
    change(record)
    assert any(finding in problem for problem in problems(world, record)), problems(world, record)


def test_a_run_without_a_cluster_names_no_nodes(record: Record) -> None:
    shape = RecordShape.model_validate(record)
    assert list(voucher_problems(shape, None, executed=True)) == ["names nodes, and the plan knows of no cluster"]


def test_a_verdict_edited_in_a_record_is_found_by_verify(world: World, tmp_path: Path) -> None:
    """Also without its seal, which alone would tell."""
    out = tmp_path / "out"
    out.mkdir()
    for source in (world.directory / "out").rglob("*"):
        if source.is_file() and "seal" not in source.name:
            (target := out / source.relative_to(world.directory / "out")).parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    assert "the node says" not in securebench("verify", out).out
    records = out / "candidates.jsonl"
    value = json.loads(records.read_text())
    value |= {"verification_status": "passed", "passed": True, "score": 1.0, "failure_reason": None}
    records.write_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n")
    found = securebench("verify", out, "--json")
    assert found.code == 1
    assert "the node says passed False, the record says True" in found.out


def test_a_signature_is_checked_before_anything_is_made_of_it() -> None:
    node = certify("r", "n", NODE.id, ENROLMENT)
    said = Statement(phase="produce", run_id="r", task_id="t", attempt=1, securebench="s", evidence="e")
    assert vouch(node, said, NODE.sign(said.encode())).node == node
    for signature in (OTHER.sign(said.encode()), b"", b"\0" * 64):
        with pytest.raises(IntegrityError, match="did not sign"):
            vouch(node, said, signature)


def test_the_enrolment_key_is_kept_for_the_owner_alone_and_forgotten(tmp_path: Path) -> None:
    keep_enrolment(tmp_path, b"\1" * 32)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_enrolment(tmp_path, {"enrolment": ENROLMENT.id}).id == ENROLMENT.id
    with pytest.raises(IntegrityError, match="not the key that the plan names"):
        kept_enrolment(tmp_path, {"enrolment": OTHER.id})
    path.write_text("nonsense")
    with pytest.raises(IntegrityError, match="not a key"):
        kept_enrolment(tmp_path, {"enrolment": ENROLMENT.id})
    forget_enrolment(tmp_path)
    with pytest.raises(IntegrityError, match="is gone"):
        kept_enrolment(tmp_path, {"enrolment": ENROLMENT.id})


def test_nothing_of_the_enrolment_key_stays_in_a_complete_run(world: World) -> None:
    assert not (world.directory / "out" / ".enrolment").exists()
