"""The seal and the checkpoints against the files: signatures, who made them, and that they are about these bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from securebench.errors import IntegrityError, StoreError
from securebench.evidence.findings import Findings
from securebench.evidence.lines import Lines
from securebench.records._durable import read_file
from securebench.records.dsse import MAX_ENVELOPE
from securebench.records.plan import PLAN_FILE, Plan
from securebench.records.seal import CHECKPOINTS_FILE, SEAL_FILE, Statement, open_statement
from securebench.records.seed import reveals
from securebench.records.store import RECORDS_FILE, ChainState, read_lines
from securebench.records.summary import SUMMARY_FILE

SUBJECTS = {PLAN_FILE, RECORDS_FILE, SUMMARY_FILE}


class Standing(StrEnum):
    """Who a key belongs to, as far as the one who verifies knows."""

    TRUSTED = "trusted"
    EPHEMERAL = "ephemeral"  # made for that run, forgotten since
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """The key of the seal."""

    id: str
    name: str | None
    standing: Standing


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One line of `checkpoints.jsonl` whose signature holds."""

    line: int
    statement: Statement


def read_checkpoints(directory: Path, findings: Findings) -> list[Checkpoint]:
    """Those whose signatures hold; the others become findings."""
    path, found = directory / CHECKPOINTS_FILE, []
    if not path.exists():
        return []
    try:
        for number, line in read_lines(path):
            if not line.endswith(b"\n"):
                findings.note(CHECKPOINTS_FILE, number, "the last checkpoint is incomplete: an interrupted write")
                continue
            try:
                found.append(Checkpoint(number, open_statement(line[:-1], f"{CHECKPOINTS_FILE}:{number}")))
            except IntegrityError as error:
                findings.raised(CHECKPOINTS_FILE, number, error)
    except StoreError as error:
        findings.raised(CHECKPOINTS_FILE, 0, error)
    return found


def read_seal(directory: Path, checkpoints: list[Checkpoint], findings: Findings) -> Statement | None:
    """The seal, if there is one and its signature holds."""
    try:
        seal = open_statement(read_file(directory / SEAL_FILE, MAX_ENVELOPE).strip(), SEAL_FILE)
    except FileNotFoundError:
        reach = max((checkpoint.statement.predicate.chain.records for checkpoint in checkpoints), default=0)
        findings.error(
            SEAL_FILE,
            0,
            "the run is not sealed: it still runs, was killed, or its seal was removed; "
            + (f"checkpoints cover its first {reach} records" if reach else "nobody vouches for any record")
            + ", and what came after could have been dropped, changed or added",
        )
        return None
    except (IntegrityError, StoreError) as error:
        findings.raised(SEAL_FILE, 0, error)
        return None
    if seal.predicate.status == "checkpoint":
        findings.error(SEAL_FILE, 0, "is a checkpoint and not the seal of a run that ended")
        return None
    return seal


def check_checkpoints(checkpoints: list[Checkpoint], lines: Lines, first: Plan, findings: Findings) -> None:
    """Each is about a beginning of the records as they are now, and none goes back behind the one before it."""
    reached = 0
    for checkpoint in checkpoints:
        predicate, number = checkpoint.statement.predicate, checkpoint.line
        _same_run(checkpoint.statement, first, CHECKPOINTS_FILE, number, findings)
        stated = _stated(checkpoint.statement)
        if lines.marks.get(stated.size, _nothing(first) if stated.size == 0 else None) != stated:
            findings.error(
                CHECKPOINTS_FILE,
                number,
                f"covers the first {stated.count} records as they were at {predicate.finished_at}; "
                "the file no longer begins with them: a line among them was changed, dropped, inserted or moved",
            )
        if stated.count < reached:
            findings.error(CHECKPOINTS_FILE, number, "covers fewer records than the checkpoint before it; it was moved")
        reached = max(reached, stated.count)


def check_seal(
    seal: Statement, lines: Lines, first: Plan, missing: str, summary: str | None, findings: Findings
) -> None:
    """`missing` names planned attempts without a record; `summary` is the sha256 of `summary.json`."""
    predicate, stated, seen = seal.predicate, _stated(seal), lines.state

    def error(message: str) -> None:
        findings.error(SEAL_FILE, 0, message)

    _same_run(seal, first, SEAL_FILE, 0, findings)
    if set(seal.subjects) != SUBJECTS:
        error(f"is about {', '.join(sorted(seal.subjects))}; expected {', '.join(sorted(SUBJECTS))}")
    if stated.count != seen.count:
        what = "were added since" if seen.count > stated.count else "are gone"
        error(f"was made over {stated.count} records; {RECORDS_FILE} has {seen.count}: records {what}")
    elif stated != seen:
        error(
            f"was made over other bytes of {RECORDS_FILE} than are there; lines were changed since (see its findings)"
        )
        if stated.head != seen.head:
            findings.error(RECORDS_FILE, seen.count, "is not the last record that was sealed: it was changed since")
    counts = {name: count for name, count in predicate.counts.model_dump().items() if count}
    if counts != dict(lines.counts):
        error(f"counts {_words(counts)}; the records are {_words(lines.counts)}")
    if summary is not None and seal.subjects.get(SUMMARY_FILE, summary) != summary:
        findings.error(SUMMARY_FILE, 0, "is not the file that was sealed: it was changed or replaced since")
    if predicate.securebench != lines.plan.securebench:
        error(f"was made by SecureBench {predicate.securebench!r}, the plan by {lines.plan.securebench!r}")
    _check_seed(seal, first, error)
    if predicate.status == "complete" and lines.missing:
        error(f"says complete, but {lines.missing} planned attempts have no record: {missing}")
    elif lines.missing:
        findings.note(
            SEAL_FILE, 0, f"the run was interrupted; {lines.missing} planned attempts have no record: {missing}"
        )


def _check_seed(seal: Statement, plan: Plan, error: Callable[[str], None]) -> None:
    seed = seal.predicate.seed
    if seed.value is None:
        if seal.predicate.status == "complete":
            error("does not reveal the run's seed")
    elif not reveals(bytes.fromhex(seed.value), plan.seed_commitment):
        error("reveals another seed than the one the plan committed to")


def check_keys(
    seal: Statement,
    checkpoints: list[Checkpoint],
    trusted: Mapping[str, str],
    expected: str | None,
    findings: Findings,
) -> KeyFacts:
    """Whose the seal is, and that no other lasting key made the checkpoints."""
    key = seal.predicate.key
    name = trusted.get(key.id)
    standing = Standing.TRUSTED if name else Standing.EPHEMERAL if key.ephemeral else Standing.UNKNOWN
    if expected is not None and key.id != expected:
        findings.error(SEAL_FILE, 0, f"is signed by {key.id}; expected {expected}: it was made by somebody else")
    others = {
        one.statement.predicate.key.id: one for one in reversed(checkpoints) if one.statement.predicate.key != key
    }
    for other, checkpoint in others.items():
        message = f"is signed by {other}, the seal by {key.id}"
        if checkpoint.statement.predicate.key.ephemeral or key.id == expected or name:
            findings.note(CHECKPOINTS_FILE, checkpoint.line, f"{message}: the run was continued with another key")
        else:
            findings.error(
                CHECKPOINTS_FILE, checkpoint.line, f"{message}, which nobody vouches for: the run was sealed again"
            )
    return KeyFacts(key.id, name, standing)


def _same_run(statement: Statement, plan: Plan, file: str, line: int, findings: Findings) -> None:
    predicate = statement.predicate
    for what, seen, expected in (
        ("run", predicate.run_id, plan.run_id),
        ("plan", predicate.plan, plan.digest),
        (PLAN_FILE, "sha256:" + statement.subjects.get(PLAN_FILE, ""), plan.digest),
        ("seed commitment", predicate.seed.commitment, plan.seed_commitment),
    ):
        if seen != expected:
            findings.error(file, line, f"is about the {what} {seen}; this one is {expected}")


def _stated(statement: Statement) -> ChainState:
    chain = statement.predicate.chain
    return ChainState(chain.head, chain.records, chain.bytes, statement.subjects.get(RECORDS_FILE, ""))


def _nothing(plan: Plan) -> ChainState:
    from hashlib import sha256

    return ChainState(plan.digest, 0, 0, sha256().hexdigest())


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
