"""The signed audits that a run carries, against what names them: each is there, unchanged, signed, passed, and of what
the run ran on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from securebench.errors import IntegrityError, StoreError
from securebench.evidence.findings import Findings
from securebench.evidence.lines import Lines
from securebench.evidence.seals import KeyFacts
from securebench.records.audits import AUDITS, AuditPredicate, SignedAudit, audit_path, load_audit, suite_digest
from securebench.records.plan import PLAN_FILE, Plan, rfc3339

RUNSC = "runsc"


def check_audits(
    directory: Path, plan: Plan, lines: Lines, key: KeyFacts | None, trusted: Mapping[str, str], findings: Findings
) -> list[dict[str, Any]]:
    """What each says in short; whatever is off becomes a finding."""
    named = {digest: None for digest in lines.audits if digest}
    for one in (plan, lines.plan):
        try:
            if digest := suite_digest(one.audit):
                named[digest] = None
        except IntegrityError as error:
            findings.error(PLAN_FILE, 0, str(error))
    found = []
    for digest in named:
        file = f"{AUDITS}/{audit_path(directory, digest).name}"
        try:
            audit = load_audit(directory, digest)
        except (IntegrityError, StoreError) as error:
            findings.raised(file, 0, error)
            continue
        for problem in _against_plan(audit.predicate, plan):
            findings.error(file, 0, problem)
        for one in (plan, lines.plan):
            stated = (one.audit or {}).get("suite")
            if isinstance(stated, Mapping) and stated.get("digest") == digest and dict(stated) != audit.as_record():
                findings.error(PLAN_FILE, 0, f"says other things of {file} than it says itself")
                break
        found.append(_facts(audit, key, trusted))
        if not found[-1]["vouched"]:
            findings.note(file, 0, f"is signed by {audit.predicate.key.id}, which is neither the run's key nor trusted")
    return found


def _against_plan(audit: AuditPredicate, plan: Plan) -> Iterator[str]:
    if not audit.passed and not plan.unsafe:
        yield "the host did not withstand the attack suite, and the run does not say that it went on all the same"
    for name, expected in (("securebench", plan.securebench), ("kernel", plan.host.get("kernel"))):
        if expected is not None and str(expected) not in audit.host.get(name, ""):
            yield f"was made with {name} {audit.host.get(name, 'unknown')}, the run with {expected}"
    if missing := _backends(plan) - audit.columns:
        yield f"nothing was played on {', '.join(sorted(missing))}, where the run ran"
    if audit.only:
        yield f"is not a full audit: only {', '.join(audit.only)} was played"


def _backends(plan: Plan) -> frozenset[str]:
    sandbox = plan.limits.get("sandbox")
    if isinstance(sandbox, Mapping) and sandbox.get("runtime") == RUNSC:
        return frozenset({RUNSC})
    backend = plan.host.get("backend")
    return frozenset(backend.split("+")) if isinstance(backend, str) else frozenset()


def _facts(audit: SignedAudit, key: KeyFacts | None, trusted: Mapping[str, str]) -> dict[str, Any]:
    signer = audit.predicate.key.id
    return {
        **audit.as_record(),
        "at": rfc3339(audit.predicate.time),
        "key": signer,
        "vouched": signer in trusted or (key is not None and signer == key.id),
    }
