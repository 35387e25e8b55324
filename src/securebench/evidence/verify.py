"""`verify_run`: is a run what its makers sealed? Offline, from its files alone; nothing is written.

Checked are, in this order: the plan; every line of the records (strict JSON, shape, chain, planned, once, digests of
what it names and of what is stored); that checkpoints and seal are signed and about these bytes; the seed; the
summary, counted again; whose key it is; the audits of the host that it carries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securebench.candidates.store import CandidateStore
from securebench.errors import ConfigError, IntegrityError, StoreError
from securebench.evidence.audits import check_audits
from securebench.evidence.contents import ContentsCheck
from securebench.evidence.findings import Finding, Findings, Severity
from securebench.evidence.lines import LinesCheck, Listener
from securebench.evidence.not_proven import not_proven
from securebench.evidence.seals import (
    KeyFacts,
    check_checkpoints,
    check_keys,
    check_seal,
    read_checkpoints,
    read_seal,
)
from securebench.evidence.summary_check import check_summary, new_tally
from securebench.records.files import MARKS
from securebench.records.keyless import bundle_problem
from securebench.records.plan import PLAN_FILE, Plan, load_plan
from securebench.records.seal import BUNDLE_FILE, SEAL_FILE
from securebench.records.store import RECORDS_FILE

CANDIDATES = "candidates"


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of it. `facts` is what the run says of itself; believe it where `ok`."""

    directory: Path
    findings: tuple[Finding, ...]
    unlisted: int = 0  # further findings of the same files
    unlisted_errors: int = 0  # those of them that are errors
    facts: Mapping[str, Any] = field(default_factory=dict)
    key: KeyFacts | None = None
    not_proven: tuple[str, ...] = ()
    plan: Plan | None = None  # the last one in force

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]

    @property
    def problems(self) -> int:
        """How many errors there are, listed or not."""
        return len(self.errors) + self.unlisted_errors

    @property
    def notes(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.NOTE]

    def as_json(self) -> dict[str, Any]:
        key = self.key and {"id": self.key.id, "name": self.key.name, "standing": str(self.key.standing)}
        return {
            "run": str(self.directory),
            "ok": self.ok,
            **self.facts,
            "key": key,
            "findings": [finding.as_json() for finding in self.findings],
            "unlisted": self.unlisted,
            "not_proven": list(self.not_proven),
        }


def verify_run(
    directory: Path, trusted: Mapping[str, str], expected_key: str | None = None, on_record: Listener | None = None
) -> Verification:
    """`trusted` maps ids of keys to their names; with `expected_key` no other key's seal will do. Never raises for
    what is in the directory: it is all in the findings.

    `on_record` is told of the very records that were checked, so that who reports them reads nothing twice."""
    findings = Findings()
    try:
        plan, digest = load_plan(directory)
    except (IntegrityError, StoreError) as error:
        # Without its plan nothing says what the records had to be.
        findings.error(PLAN_FILE, 0, str(error).removeprefix(f"{directory / PLAN_FILE}: "))
        return Verification(directory, tuple(findings.found))
    checkpoints = read_checkpoints(directory, findings)
    seal = read_seal(directory, checkpoints, findings)
    tally = new_tally(directory, plan)
    contents = ContentsCheck(CandidateStore(directory / CANDIDATES))
    check = LinesCheck(directory, plan, digest, contents, tally, findings, on_record)
    lines = check.run(one.statement.predicate.chain.bytes for one in checkpoints)
    check_checkpoints(checkpoints, lines, plan, findings)
    interrupted = None if seal is None else seal.predicate.status == "interrupted"
    if lines.plan is not plan:
        tally.plan = new_tally(directory, lines.plan).plan
    summary = check_summary(directory, tally, interrupted, findings)
    key = None
    if seal is not None:
        check_seal(seal, lines, plan, check.missing_named(), summary, findings)
        key = check_keys(seal, checkpoints, trusted, expected_key, findings)
        if (directory / BUNDLE_FILE).exists():
            _check_bundle(directory, findings)
    elif lines.missing:
        findings.error(PLAN_FILE, 0, f"{lines.missing} planned attempts have no record: {check.missing_named()}")
    audits = check_audits(directory, plan, lines, key, trusted, findings)
    result = tally.summary(0.0)
    facts = _facts(plan) | {
        "status": seal.predicate.status if seal is not None else "unsealed",
        "finished_at": seal.predicate.finished_at if seal is not None else None,
        "planned": lines.plan.total,
        "recorded": lines.plan.total - lines.missing,
        "records": lines.state.count,
        "checkpoints": len(checkpoints),
        "audits": audits,
        **{name: getattr(result, name) for name in ("passed", "failed", "pending", "errors", "score")},
    }
    return Verification(
        directory,
        tuple(findings.found),
        sum(findings.unlisted.values()),
        sum(count for (_, severity), count in findings.unlisted.items() if severity is Severity.ERROR),
        facts,
        key,
        tuple(not_proven(lines, key)),
        lines.plan,
    )


def _check_bundle(directory: Path, findings: Findings) -> None:
    if problem := bundle_problem(directory):
        findings.error(BUNDLE_FILE, 0, problem)
    else:
        findings.note(BUNDLE_FILE, 0, "is about the same statement; whose it is, the sigstore tool can tell")


def _facts(plan: Plan) -> dict[str, Any]:
    return {
        "run_id": plan.run_id,
        "benchmark": {"id": plan.benchmark.id, "version": plan.benchmark.version, "digest": plan.pack_digest},
        "harness": plan.harness.get("type"),
        "securebench": plan.securebench,
        "filtered": bool(plan.filters),
    }


def find_runs(path: Path) -> list[Path]:
    """The run at `path`, or every run beneath it, in order. Raises ConfigError when there is none."""
    if not path.is_dir():
        raise ConfigError(f"{path}: no such directory")
    found = [path] if _is_run(path) else sorted(_beneath(path))
    if not found:
        raise ConfigError(f"{path}: holds no run: expected {PLAN_FILE}, {RECORDS_FILE} or {SEAL_FILE}")
    return found


def _beneath(path: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(path):
        if not set(files).isdisjoint(MARKS):
            directories.clear()  # what lies in a run is the run's
            yield Path(parent)


def _is_run(path: Path) -> bool:
    return any(os.path.lexists(path / name) for name in MARKS)
