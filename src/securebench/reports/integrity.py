"""Whether a run is what was sealed, what was tried beside the tests, and what all of it does not prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from securebench.errors import FailureReason
from securebench.evidence.findings import Finding
from securebench.evidence.verify import Verification
from securebench.records.seal import SEAL_FILE
from securebench.reports.runs import Run
from securebench.reports.under_way import is_held
from securebench.reports.words import counted

GOOD, BAD, OPEN = "passed", "failed", "pending"
_MARKS = {GOOD: "✓", BAD: "✗", OPEN: "–"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: good, bad, or open where it was not done or cannot be said."""

    name: str
    state: str
    words: str

    @property
    def mark(self) -> str:
        return _MARKS[self.state]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "state": self.state, "words": self.words}


@dataclass(frozen=True, slots=True)
class Integrity:
    """`verdict` in a few words, the checks behind it, what is wrong, what is worth knowing, what is not proven. It is
    good where a key that is trusted sealed all of it, and open where anybody could have."""

    state: str
    verdict: str
    checks: tuple[Check, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    not_proven: tuple[str, ...]
    more: int  # problems and notes that are not listed

    @property
    def mark(self) -> str:
        return _MARKS[self.state]

    def as_json(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "verdict": self.verdict,
            "checks": [check.as_json() for check in self.checks],
            "problems": list(self.problems),
            "notes": list(self.notes),
            "not_proven": list(self.not_proven),
            "more": self.more,
        }


def integrity_of(run: Run) -> Integrity:
    seen = run.verification
    state, verdict = _unended(run) or _verdict(seen)
    wrong = run.faults if state == OPEN else seen.errors
    return Integrity(
        state,
        verdict,
        (_chain(run, wrong), _seal(run, state), *_audits(run), _controls(run), _tampering(run)),
        tuple(map(str, wrong)),
        tuple(str(finding) for finding in seen.findings if finding not in wrong),
        seen.not_proven,
        seen.unlisted,
    )


def _unended(run: Run) -> tuple[str, str] | None:
    """Of a run that is under way, or was stopped: what it lacks is no fault of what is there."""
    facts = run.verification.facts
    recorded = f"{facts['recorded']:,} of {facts['planned']:,} recorded"
    if run.seal_status == "unsealed" and is_held(run.directory):
        return OPEN, f"Still running: {recorded}, not sealed yet"
    return (OPEN, f"Stopped before its end: {recorded}; continue with `run --resume`") if run.unfinished else None


def _verdict(seen: Verification) -> tuple[str, str]:
    """A seal says who vouches for a run: without a name behind it, whoever can write the files can seal them anew."""
    if not seen.ok or seen.key is None:
        return BAD, f"Not verified: {counted(seen.problems, 'problem')}"
    if seen.key.standing == "trusted":
        return GOOD, f"Verified, sealed by {seen.key.name}"
    who = "names nobody" if seen.key.standing == "ephemeral" else "is of a key you do not know"
    return OPEN, f"Consistent, but the seal {who}"


def _chain(run: Run, faults: Sequence[Finding]) -> Check:
    facts = run.verification.facts
    wrong = sum(finding.file != SEAL_FILE for finding in faults)
    recorded = f"{facts['recorded']:,} of {facts['planned']:,} attempts"
    words = f"{facts['records']:,} records in one chain from the plan, {recorded}"
    if wrong:
        return Check("chain and contents", BAD, f"{words}; {counted(wrong, 'finding')} below")
    return Check("chain and contents", GOOD, f"{words}; every candidate and file has its digest")


def _seal(run: Run, state: str) -> Check:
    key, facts = run.verification.key, run.verification.facts
    if key is None:
        return Check("seal", state, "it is not sealed yet" if state == OPEN else "there is no valid seal")
    who = {"trusted": f"{key.name}, whom you trust", "ephemeral": "a key made for this run, which names nobody"}.get(
        key.standing, "a key you do not know"
    )
    wrong = any(finding.file == SEAL_FILE for finding in run.verification.errors)
    state = BAD if wrong else GOOD if key.standing == "trusted" else OPEN
    return Check("seal", state, f"{facts['status']}, signed by {who} ({key.id})")


def _audits(run: Run) -> Iterator[Check]:
    audit = run.plan.audit or {}
    if isinstance(audit.get("checks"), int):
        good = audit.get("passed") is True
        words = f"{audit['checks']:,} checks of the walls on {audit.get('level', 'this host')} before the run"
        yield Check("audit of the walls", GOOD if good else BAD, f"{words}: {'passed' if good else 'not passed'}")
    elif run.plan.unsafe:
        yield Check("audit of the walls", BAD, "the operator went without it")
    else:
        yield Check("audit of the walls", OPEN, "nothing was executed, or the plan does not say")
    for one in run.verification.facts.get("audits", ()):
        yield _attack_suite(one)


def _attack_suite(one: Mapping[str, Any]) -> Check:
    words = f"{one['held']} of {one['attacks']} attacks held on {one['on']}, {one['at']}"
    held = one["held"] == one["attacks"]
    state = (GOOD if held else BAD) if one["vouched"] else OPEN
    return Check("attack suite", state, words if one["vouched"] else f"{words}, signed by a key you do not know")


def _controls(run: Run) -> Check:
    held = Counter(state for row in run.rows for _, state in row.controls)
    names = sorted({name for row in run.rows for name, _ in row.controls})
    if not names:
        return Check("controls", OPEN, "no family of this run has controls beside its tests")
    told = [
        f"{held[state]:,} {word}"
        for state, word in ((True, "held"), (False, "did not hold"), (None, "not run"))
        if held[state]
    ]
    # A control that does not hold fails its attempt: that it caught something is what it is for.
    return Check("controls", GOOD, f"{', '.join(told)} ({', '.join(names[:8])})")


def _tampering(run: Run) -> Check:
    caught = [row.name for row in run.rows if row.failure_reason == FailureReason.TAMPERING]
    if not caught:
        return Check("tampering", GOOD, "none was found")
    names = ", ".join(caught[:5]) + (f" and {len(caught) - 5:,} more" if len(caught) > 5 else "")
    were = "was" if len(caught) == 1 else "were"
    return Check("tampering", BAD, f"{counted(len(caught), 'attempt')} {were} caught at it, and failed: {names}")
