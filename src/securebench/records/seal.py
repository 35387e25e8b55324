"""Seal and checkpoints: signed statements of how far a run has come.

Both are in-toto statements in DSSE envelopes. A seal is about the finished files and replaces nothing: the seal of an
earlier start is kept as a line of `checkpoints.jsonl`, where every checkpoint is about a beginning of the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from securebench import _json
from securebench._canonical import canonical_bytes, digest_bytes
from securebench._schema import ClosedModel
from securebench.errors import IntegrityError, StoreError
from securebench.records._durable import append_line, read_file, replace_file, sync_directory
from securebench.records.dsse import MAX_ENVELOPE, Envelope, decode_envelope, sign
from securebench.records.keys import SigningKey
from securebench.records.plan import PLAN_FILE, Digest, Hex32, RunId, Short, Timestamp, wrong_fields
from securebench.records.seed import commit
from securebench.records.store import RECORDS_FILE, ChainState
from securebench.records.summary import SUMMARY_FILE

SEAL_FILE = "seal.json"
BUNDLE_FILE = "seal.sigstore.json"  # the same statement signed through Sigstore, see `keyless`
CHECKPOINTS_FILE = "checkpoints.jsonl"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE: Literal["https://in-toto.io/Statement/v1"] = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Literal["https://securebench.org/attestations/run/v1"] = "https://securebench.org/attestations/run/v1"
MAX_SUMMARY = 256 * 2**20

Status = Literal["complete", "interrupted", "checkpoint"]
_Count = Annotated[int, Field(ge=0)]


class _Sha256(ClosedModel):
    sha256: Hex32


class Subject(ClosedModel):
    """A file of the run by the digest of its exact bytes."""

    name: Literal["plan.json", "candidates.jsonl", "summary.json"]
    digest: _Sha256


class Counts(ClosedModel):
    """Records by status, as they are in the file: an `error` that was tried again is still counted."""

    passed: _Count = 0
    failed: _Count = 0
    pending: _Count = 0
    error: _Count = 0


class Chain(ClosedModel):
    """How far the records had come."""

    head: Digest
    records: _Count
    bytes: _Count


class Seed(ClosedModel):
    """The commitment of the plan, and the seed itself once nothing depends on its secrecy."""

    commitment: Hex32
    value: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){1,1024}$")] | None = None


class Key(ClosedModel):
    id: Annotated[str, StringConstraints(pattern=r"^ed25519:[0-9a-f]{64}$")]
    ephemeral: bool


class Predicate(ClosedModel):
    """What is stated of a run."""

    run_id: RunId
    status: Status
    plan: Digest
    chain: Chain
    counts: Counts
    seed: Seed
    started_at: Timestamp
    finished_at: Timestamp
    securebench: Short
    key: Key


class _Statement(ClosedModel):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: Annotated[tuple[Subject, ...], Field(min_length=1, max_length=3)]
    predicateType: Literal["https://securebench.org/attestations/run/v1"]
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Statement:
    """What one envelope says: which bytes it is about, and what of them."""

    subjects: Mapping[str, str]  # file name to sha256 hex
    predicate: Predicate

    def encode(self) -> bytes:
        return canonical_bytes(
            {
                "_type": STATEMENT_TYPE,
                "subject": [{"name": name, "digest": {"sha256": value}} for name, value in self.subjects.items()],
                "predicateType": PREDICATE_TYPE,
                "predicate": self.predicate.model_dump(mode="json"),
            }
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """What is to be stated, gathered by the one who runs."""

    run_id: str
    plan_digest: str
    chain: ChainState
    counts: Mapping[str, int]
    seed: bytes
    started_at: str
    finished_at: str
    securebench: str


def seal_run(directory: Path, progress: Progress, status: Literal["complete", "interrupted"], key: SigningKey) -> None:
    """Write and sync `seal.json` over `plan.json`, the records and `summary.json`; an earlier seal becomes a line of
    `checkpoints.jsonl` first. A complete run reveals its seed. Raises StoreError."""
    path = directory / SEAL_FILE
    try:
        summary = digest_bytes(read_file(directory / SUMMARY_FILE, MAX_SUMMARY))
    except FileNotFoundError:
        raise StoreError(f"{directory / SUMMARY_FILE}: must be written before the run is sealed") from None
    envelope = _signed(progress, status, key, {SUMMARY_FILE: summary.removeprefix("sha256:")})
    _copy_earlier_seal(directory)
    replace_file(path, envelope.encode() + b"\n")
    _remove(directory / BUNDLE_FILE)  # was about the seal before


def keep_earlier_seal(directory: Path) -> None:
    """Move the seal of an earlier start into `checkpoints.jsonl`. Call it before records are appended to a sealed
    run: the old seal is about the records as they were. Raises StoreError."""
    _copy_earlier_seal(directory)
    for name in (BUNDLE_FILE, SEAL_FILE):
        _remove(directory / name)


def _remove(path: Path) -> None:
    try:
        if path.exists():
            path.unlink()
            sync_directory(path.parent)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def _copy_earlier_seal(directory: Path) -> None:
    try:
        earlier = read_file(directory / SEAL_FILE, MAX_ENVELOPE)
    except FileNotFoundError:
        return
    line = b" ".join(earlier.split()) + b"\n"  # whatever it is, it stays one line
    if not _is_last_line(directory / CHECKPOINTS_FILE, line):  # a crash came between copying and what follows
        append_line(directory / CHECKPOINTS_FILE, line)


def checkpoint(directory: Path, progress: Progress, key: SigningKey) -> None:
    """Add a signed checkpoint to `checkpoints.jsonl`: these records were there at that time. Raises StoreError."""
    append_line(directory / CHECKPOINTS_FILE, _signed(progress, "checkpoint", key, {}).encode() + b"\n")


def _signed(progress: Progress, status: Status, key: SigningKey, more: Mapping[str, str]) -> Envelope:
    predicate = Predicate(
        run_id=progress.run_id,
        status=status,
        plan=progress.plan_digest,
        chain=Chain(head=progress.chain.head, records=progress.chain.count, bytes=progress.chain.size),
        counts=Counts(**progress.counts),
        # What is not finished may be continued, and then its seed must not be known yet.
        seed=Seed(commitment=commit(progress.seed), value=progress.seed.hex() if status == "complete" else None),
        started_at=progress.started_at,
        finished_at=progress.finished_at,
        securebench=progress.securebench,
        key=Key(id=key.id, ephemeral=key.ephemeral),
    )
    files = {PLAN_FILE: progress.plan_digest.removeprefix("sha256:"), RECORDS_FILE: progress.chain.sha256}
    return sign(PAYLOAD_TYPE, Statement(files | dict(more), predicate).encode(), key)


class _Keyed(Protocol):
    @property
    def key(self) -> Key: ...


class _Signed(Protocol):
    @property
    def predicate(self) -> _Keyed: ...


S = TypeVar("S", bound=_Signed)


def open_signed(data: bytes, name: str, model: type[S], about: str) -> S:
    """An in-toto statement of this form, after checking that the key it names signed it. Raises IntegrityError."""
    envelope = decode_envelope(data, name)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise IntegrityError(f"{name}: its payload is {envelope.payload_type!a}, not an in-toto statement")
    try:
        value = TypeAdapter(model).validate_json(_json.dumps(_json.loads(envelope.payload)))
    except _json.JsonError as error:
        raise IntegrityError(f"{name}: the statement is {error}") from error
    except ValidationError as error:
        raise IntegrityError(f"{name}: not a statement about {about}: {'; '.join(wrong_fields(error))}") from None
    except RecursionError:
        raise IntegrityError(f"{name}: nested too deeply") from None
    signer = value.predicate.key.id
    if not envelope.verified_by(signer):
        raise IntegrityError(f"{name}: the signature does not hold: it was changed after {signer} signed it")
    return value


def open_statement(data: bytes, name: str) -> Statement:
    """What an envelope of ours says, after checking that the key it names signed it. Raises IntegrityError."""
    value = open_signed(data, name, _Statement, "a run")
    subjects: dict[str, str] = {subject.name: subject.digest.sha256 for subject in value.subject}
    if len(subjects) != len(value.subject):
        raise IntegrityError(f"{name}: names a file twice")
    return Statement(subjects, value.predicate)


def _is_last_line(path: Path, line: bytes) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - len(line)))
            return file.read() == line
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
