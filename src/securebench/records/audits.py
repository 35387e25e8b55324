"""Signed audits: that a host withstood the attack suite, as an in-toto statement in a DSSE envelope.

A run that carries one names it by the digest of its bytes, in the plan and in every record made under it, and keeps it
as `audits/HEX.json`. What the chain is over cannot name another one afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from securebench._canonical import canonical_bytes, digest_bytes
from securebench._schema import ClosedModel
from securebench.errors import IntegrityError, StoreError
from securebench.records._durable import create_file, read_file
from securebench.records.dsse import MAX_ENVELOPE, sign
from securebench.records.keys import SigningKey
from securebench.records.plan import Hex32
from securebench.records.seal import PAYLOAD_TYPE, STATEMENT_TYPE, Key, open_signed

AUDITS = "audits"
AUDIT_PREDICATE: Literal["https://securebench.org/attestations/audit/v1"] = (
    "https://securebench.org/attestations/audit/v1"
)
_Text = Annotated[str, StringConstraints(max_length=10_000)]
_Verdict = Literal["held", "succeeded", "fault", "twin_failed", "broken", "not_played"]
_Seconds = Annotated[float, Field(ge=0)]


class AuditRow(ClosedModel):
    """One attack on one backend."""

    attack: _Text
    threat: _Text
    title: _Text
    backend: _Text
    verdict: _Verdict
    detail: _Text
    seconds: _Seconds


class AuditCheck(ClosedModel):
    """One canary."""

    id: _Text
    group: _Text
    passed: bool
    detail: _Text


class AuditCanaries(ClosedModel):
    """All canaries of one column."""

    id: _Text
    level: _Text
    key: _Text
    time: _Seconds
    seconds: _Seconds
    checks: Annotated[int, Field(ge=0)]
    passed: bool
    cached: bool
    rows: Annotated[tuple[AuditCheck, ...], Field(max_length=10_000)]


class AuditPredicate(ClosedModel):
    """What is stated of a host: every row, what they depend on, and whose statement it is."""

    passed: bool
    time: _Seconds
    seconds: _Seconds
    host: Annotated[Mapping[_Text, _Text], Field(max_length=100)]
    counts: Annotated[Mapping[_Text, int], Field(max_length=20)]
    rows: Annotated[tuple[AuditRow, ...], Field(max_length=100_000)]
    only: Annotated[tuple[_Text, ...], Field(max_length=10_000)]
    canaries: Annotated[Mapping[_Text, AuditCanaries], Field(max_length=100)]
    key: Key

    @property
    def columns(self) -> frozenset[str]:
        """The backends something was played on."""
        return frozenset(row.backend for row in self.rows)

    def contradiction(self) -> str | None:
        """What in it cannot be true."""
        verdicts = [row.verdict for row in self.rows]
        if {name: count for name, count in self.counts.items() if count} != {v: verdicts.count(v) for v in verdicts}:
            return "counts other rows than it has"
        if len({(row.attack, row.backend) for row in self.rows}) != len(self.rows):
            return "has an attack on a backend twice"
        for name, one in self.canaries.items():
            if one.passed != (bool(one.rows) and all(row.passed for row in one.rows)) or one.checks != len(one.rows):
                return f"says of the canaries of {name} what their rows do not"
        held = {row.backend for row in self.rows if row.verdict == "held"}
        suite = [set(verdicts) <= {"held", "not_played"} and held == self.columns] if verdicts else []
        parts = [*suite, *(one.passed for one in self.canaries.values())]
        if self.passed != (bool(parts) and all(parts)):
            return "says of itself what its rows do not"
        return None


class _Sha256(ClosedModel):
    sha256: Hex32


class _Subject(ClosedModel):
    name: Literal["securebench"]
    digest: _Sha256


class _Statement(ClosedModel):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: Annotated[tuple[_Subject, ...], Field(min_length=1, max_length=1)]
    predicateType: Literal["https://securebench.org/attestations/audit/v1"]
    predicate: AuditPredicate


@dataclass(frozen=True, slots=True)
class SignedAudit:
    """An audit whose signature holds. `data` are its exact bytes."""

    data: bytes
    predicate: AuditPredicate

    @property
    def digest(self) -> str:
        return digest_bytes(self.data)

    def as_record(self) -> dict[str, Any]:
        """The short form that goes into plan and records."""
        held = sum(row.verdict == "held" for row in self.predicate.rows)
        return {
            "digest": self.digest,
            "passed": self.predicate.passed,
            "held": held,
            "attacks": len(self.predicate.rows),
            "on": "+".join(sorted(self.predicate.columns)),
            "time": round(self.predicate.time, 3),
        }


def make_audit(value: Mapping[str, Any], key: SigningKey) -> SignedAudit:
    """Sign what the suite found. Raises ValueError for what is no such thing."""
    predicate = {**value, "key": {"id": key.id, "ephemeral": key.ephemeral}}
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": "securebench", "digest": {"sha256": _code(value["host"]) or ""}}],
        "predicateType": AUDIT_PREDICATE,
        "predicate": predicate,
    }
    data = sign(PAYLOAD_TYPE, canonical_bytes(statement), key).encode() + b"\n"
    try:
        return open_audit(data, "the audit")
    except IntegrityError as error:
        raise ValueError(str(error)) from error


def open_audit(data: bytes, name: str) -> SignedAudit:
    """What a signed audit says, after checking that the key it names signed it. Raises IntegrityError."""
    value = open_signed(data, name, _Statement, "an audit")
    predicate = value.predicate
    if value.subject[0].digest.sha256 != _code(predicate.host):
        raise IntegrityError(f"{name}: is about other code than its host had")
    if problem := predicate.contradiction():
        raise IntegrityError(f"{name}: {problem}")
    return SignedAudit(data, predicate)


def store_audit(directory: Path, audit: SignedAudit) -> None:
    """Keep it in a run directory, under its digest. Raises StoreError."""
    path = audit_path(directory, audit.digest)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        create_file(path, audit.data)
    except FileExistsError:
        load_audit(directory, audit.digest)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def load_audit(directory: Path, digest: str) -> SignedAudit:
    """The audit of a run directory with that digest. Raises IntegrityError where it is gone, another one, or not
    signed; StoreError."""
    path = audit_path(directory, digest)
    name = f"{AUDITS}/{path.name}"
    try:
        data = read_file(path, MAX_ENVELOPE)
    except FileNotFoundError:
        raise IntegrityError(f"{name}: the audit that the run names is gone") from None
    if digest_bytes(data) != digest:
        raise IntegrityError(f"{name}: not the audit that the run names: it was changed or exchanged")
    return open_audit(data, name)


def audit_path(directory: Path, digest: str) -> Path:
    return directory / AUDITS / f"{digest.removeprefix('sha256:')}.json"


def suite_digest(audit: Mapping[str, Any] | None) -> str | None:
    """The digest of the signed audit that a plan's or record's `audit` names, if it does. Raises IntegrityError."""
    suite = (audit or {}).get("suite")
    if suite is None:
        return None
    digest = suite.get("digest") if isinstance(suite, Mapping) else None
    if not isinstance(digest, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise IntegrityError("names an audit without its digest")
    return digest


def _code(host: Mapping[str, str]) -> str | None:
    found = re.search(r"sha256:([0-9a-f]{64})", host.get("securebench", ""))
    return found[1] if found else None
