"""Admissions: what came out when every row of a pack was tried, kept beside the pack as `admission.json`, and a
signature over it in `admission.seal.json` where one was wanted.

An admission names the pack by its digest: it says nothing about a pack that was changed since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from securebench import _json
from securebench._canonical import canonical_bytes, digest_bytes
from securebench._schema import ClosedModel
from securebench.errors import IntegrityError
from securebench.records._durable import create_file, read_file
from securebench.records.dsse import MAX_ENVELOPE, sign
from securebench.records.keys import SigningKey
from securebench.records.plan import Hex32, wrong_fields
from securebench.records.seal import PAYLOAD_TYPE, STATEMENT_TYPE, Key, open_signed

ADMISSION, SEAL = "admission.json", "admission.seal.json"
MAX_ADMISSION = 2**30
ADMISSION_PREDICATE: Literal["https://securebench.org/attestations/admission/v1"] = (
    "https://securebench.org/attestations/admission/v1"
)
_Text = Annotated[str, StringConstraints(max_length=10_000)]
_Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0)]
Outcome = Literal["passed", "failed", "error", "absent", "not_judged"]


class RowAdmission(ClosedModel):
    """What came out for one row. `reference` is `absent` where the row has none, `not_judged` where a model would have
    to. `without_work` names what passed and must not; `errors` what could not be judged, by whose fault it was."""

    id: _Text
    admitted: bool
    reference: Outcome
    without_work: tuple[_Text, ...] = ()
    mutants: _Count = 0
    noticed: _Count = 0
    pack_errors: tuple[_Text, ...] = ()
    host_errors: tuple[_Text, ...] = ()
    excluded: bool = False

    @property
    def sound(self) -> bool:
        """What `admitted` must say: nothing is known against the row, and nothing is unknown."""
        return self.reference not in ("failed", "error") and not (
            self.without_work or self.pack_errors or self.host_errors
        )


class Admission(ClosedModel):
    """All rows of a pack, and those that were excluded from it."""

    pack: _Text
    version: _Count
    digest: _Digest
    securebench: _Text
    sandbox: _Text | None
    mutants_each: _Count
    seed: int
    counts: Mapping[_Text, int]
    constants: Mapping[_Text, Annotated[float, Field(ge=0, le=1)]]  # the share of text rows that each passes, by luck
    rows: tuple[RowAdmission, ...]

    @property
    def failing(self) -> list[RowAdmission]:
        return [row for row in self.rows if not row.admitted and not row.excluded]

    def contradiction(self) -> str | None:
        """What in it cannot be true."""
        if dict(self.counts) != count(self.rows):
            return "counts other rows than it has"
        if any(row.admitted != row.sound for row in self.rows) or any(row.noticed > row.mutants for row in self.rows):
            return "says of a row what its trials do not"
        if len({row.id for row in self.rows}) != len(self.rows):
            return "has a row twice"
        return None


def count(rows: tuple[RowAdmission, ...]) -> dict[str, int]:
    """What an admission counts."""
    return {
        "rows": len(rows),
        "admitted": sum(row.admitted for row in rows),
        "excluded": sum(row.excluded for row in rows),
        "references_passed": sum(row.reference == "passed" for row in rows),
        "references_failed": sum(row.reference in ("failed", "error") for row in rows),
        "without_reference": sum(row.reference in ("absent", "not_judged") for row in rows),
        "passed_without_work": sum(bool(row.without_work) for row in rows),
        "not_judged": sum(bool(row.pack_errors or row.host_errors) for row in rows),
        "mutants": sum(row.mutants for row in rows),
        "mutants_noticed": sum(row.noticed for row in rows),
    }


class AdmissionPredicate(ClosedModel):
    """What is signed: the counts, and whose word it is. The rows are in the file that the statement is about."""

    pack: _Text
    digest: _Digest
    securebench: _Text
    counts: Mapping[_Text, int]
    key: Key


class _Sha256(ClosedModel):
    sha256: Hex32


class _Subject(ClosedModel):
    name: Literal["admission.json"]
    digest: _Sha256


class _Statement(ClosedModel):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: Annotated[tuple[_Subject, ...], Field(min_length=1, max_length=1)]
    predicateType: Literal["https://securebench.org/attestations/admission/v1"]
    predicate: AdmissionPredicate


@dataclass(frozen=True, slots=True)
class StoredAdmission:
    """An admission beside a pack; `key` is who signed it, None where nobody did."""

    admission: Admission
    key: Key | None


def write_admission(directory: Path, admission: Admission, key: SigningKey | None) -> None:
    """Raises StoreError, FileExistsError."""
    data = _json.dumps(admission.model_dump(mode="json", exclude_defaults=False)).encode() + b"\n"
    create_file(directory / ADMISSION, data)
    if key is not None:
        create_file(directory / SEAL, _sealed(admission, data, key))


def load_admission(directory: Path, digest: str) -> StoredAdmission | None:
    """The admission of the pack with that digest; None where there is none. Raises IntegrityError for one of another
    pack, one that contradicts itself, and one that is not what was signed."""
    try:
        data = read_file(directory / ADMISSION, MAX_ADMISSION)
    except FileNotFoundError:
        return None
    try:
        admission = Admission.model_validate_json(_json.dumps(_json.loads(data)))
    except ValidationError as error:
        raise IntegrityError(f"{ADMISSION}: not an admission: {'; '.join(wrong_fields(error))}") from None
    except (_json.JsonError, RecursionError) as error:
        raise IntegrityError(f"{ADMISSION}: {error}") from error
    if admission.digest != digest:
        raise IntegrityError(f"{ADMISSION}: is about another pack; this one was changed since it was admitted")
    if problem := admission.contradiction():
        raise IntegrityError(f"{ADMISSION}: {problem}")
    try:
        sealed = read_file(directory / SEAL, MAX_ENVELOPE)
    except FileNotFoundError:
        return StoredAdmission(admission, None)
    return StoredAdmission(admission, _opened(sealed, data, admission))


def _sealed(admission: Admission, data: bytes, key: SigningKey) -> bytes:
    statement: dict[str, Any] = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": ADMISSION, "digest": {"sha256": digest_bytes(data).removeprefix("sha256:")}}],
        "predicateType": ADMISSION_PREDICATE,
        "predicate": {
            "pack": admission.pack,
            "digest": admission.digest,
            "securebench": admission.securebench,
            "counts": dict(admission.counts),
            "key": {"id": key.id, "ephemeral": key.ephemeral},
        },
    }
    return sign(PAYLOAD_TYPE, canonical_bytes(statement), key).encode() + b"\n"


def _opened(sealed: bytes, data: bytes, admission: Admission) -> Key:
    value = open_signed(sealed, SEAL, _Statement, "an admission")
    if f"sha256:{value.subject[0].digest.sha256}" != digest_bytes(data):
        raise IntegrityError(f"{SEAL}: {ADMISSION} is not the one that was signed")
    predicate = value.predicate
    if predicate.digest != admission.digest or dict(predicate.counts) != dict(admission.counts):
        raise IntegrityError(f"{SEAL}: says something else than {ADMISSION}")
    return predicate.key
