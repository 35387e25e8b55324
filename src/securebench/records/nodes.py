"""Who vouches for what a node did: the plan names an enrolment key, that key certifies each node's own, and the node
signs what it produced or judged. All of it stands in the record, so that `verify` can follow it offline.

A statement holds what the record says in plain words, and the digest of everything the node sent: what is scrubbed
from a record does not have to be shown to check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from securebench._canonical import canonical_bytes
from securebench._schema import ClosedModel
from securebench.errors import IntegrityError, StoreError
from securebench.records._durable import create_file, read_file
from securebench.records.keys import SigningKey, signature_holds, signing_key_from
from securebench.records.shape import RecordShape

ENROLMENT_FILE = ".enrolment"
PRODUCE: Literal["produce"] = "produce"
VERIFY: Literal["verify"] = "verify"
PHASES = (PRODUCE, VERIFY)
_CERTIFIES = "securebench node certificate 1"
_STATES = "securebench node statement 1"

KeyId = Annotated[str, StringConstraints(pattern=r"^ed25519:[0-9a-f]{64}$")]
Signature = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]
Short = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class Node(ClosedModel):
    """A node as records name it, certified by the run's enrolment key."""

    name: Short
    key: KeyId
    certificate: Signature


class Statement(ClosedModel):
    """What a node says of one attempt. Of what it produced: the candidate. Of what it judged: also the verdict."""

    phase: Literal["produce", "verify"]
    run_id: Short
    task_id: Annotated[str, StringConstraints(min_length=1)]
    attempt: Annotated[int, Field(ge=1, lt=2**53)]
    row: str | None = None
    candidate: str | None = None
    status: str | None = None
    passed: bool | None = None
    score: float | None = None
    assurance: str | None = None
    failure_reason: str | None = None
    securebench: str
    evidence: str  # the digest of all that was sent

    def encode(self) -> bytes:
        return canonical_bytes({"type": _STATES, **self.model_dump(mode="json")})


class Voucher(ClosedModel):
    """One entry of a record's `nodes`."""

    node: Node
    statement: Statement
    signature: Signature


def certify(run_id: str, name: str, key: str, enrolment: SigningKey) -> Node:
    """The node of that key, taken into the run."""
    return Node(name=name, key=key, certificate=enrolment.sign(_certificate(run_id, name, key)).hex())


def _certificate(run_id: str, name: str, key: str) -> bytes:
    return canonical_bytes({"type": _CERTIFIES, "run_id": run_id, "name": name, "key": key})


def vouch(node: Node, statement: Statement, signature: bytes) -> Voucher:
    """Raises IntegrityError unless the node's own key signed this statement."""
    if not signature_holds(node.key, signature, statement.encode()):
        raise IntegrityError(f"node {node.name} sent evidence that its enrolled key did not sign; it is refused")
    return Voucher(node=node, statement=statement, signature=signature.hex())


def voucher_problems(record: RecordShape, executor: Mapping[str, Any] | None, *, executed: bool) -> Iterator[str]:
    """What is wrong with the vouchers of a record. `executor` is what its plan says of the cluster, and `executed`
    whether such a task's candidates are: then one that passed must have a node's word for it."""
    if executor is None:
        if record.nodes:
            yield "names nodes, and the plan knows of no cluster"
        return
    if executed and record.passed and VERIFY not in (record.nodes or {}):
        yield "passed on a cluster, and no node vouches for it"
    run_id, enrolment = record.run_id, str(executor.get("enrolment"))
    for phase, value in (record.nodes or {}).items():
        try:
            voucher = Voucher.model_validate(value)
        except ValidationError:
            yield f"nodes.{phase} is not the word of a node"
            continue
        node, said = voucher.node, voucher.statement
        certificate = bytes.fromhex(node.certificate)
        if phase not in PHASES or said.phase != phase:
            yield f"nodes.{phase} is about another phase"
        if not signature_holds(enrolment, certificate, _certificate(run_id, node.name, node.key)):
            yield f"nodes.{phase}: the key of node {node.name} was never enrolled in this run"
        elif not signature_holds(node.key, bytes.fromhex(voucher.signature), said.encode()):
            yield f"nodes.{phase}: node {node.name} did not sign this"
        yield from (f"nodes.{phase}: {problem}" for problem in _contradictions(said, record))


def _contradictions(said: Statement, record: RecordShape) -> Iterator[str]:
    digests = record.digests
    expected: dict[str, Any] = {
        "run_id": record.run_id,
        "task_id": record.task_id,
        "attempt": record.attempt,
        "candidate": digests.candidate,
        "securebench": digests.securebench,
    }
    if said.phase == VERIFY:
        expected |= {
            "row": digests.row,
            "status": record.verification_status,
            "passed": record.passed,
            "score": record.score,
            "failure_reason": record.failure_reason,
        }
        if record.assurance != "unsafe":
            expected["assurance"] = record.assurance
    for name, value in expected.items():
        if (stated := getattr(said, name)) != value:
            yield f"the node says {name} {stated!r}, the record says {value!r}"


# -- the enrolment key, kept for later starts ------------------------------------------------------------------------


def keep_enrolment(directory: Path, secret: bytes) -> None:
    """Keep it for a later start, readable by the owner alone. Raises StoreError."""
    path = directory / ENROLMENT_FILE
    try:
        path.unlink(missing_ok=True)
        create_file(path, secret.hex().encode(), 0o600)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def kept_enrolment(directory: Path, stated: Mapping[str, Any]) -> SigningKey:
    """The key an earlier start kept. Raises IntegrityError when it is gone or another one."""
    path = directory / ENROLMENT_FILE
    try:
        key = signing_key_from(bytes.fromhex(read_file(path, 4096).decode("ascii")))
    except FileNotFoundError:
        raise IntegrityError(f"{path}: the key by which nodes are enrolled is gone") from None
    except ValueError:
        raise IntegrityError(f"{path}: not a key") from None
    if key.id != stated.get("enrolment"):
        raise IntegrityError(f"{path}: not the key that the plan names")
    return key


def forget_enrolment(directory: Path) -> None:
    """Remove it, once nothing is left to be done."""
    with suppress(OSError):
        (directory / ENROLMENT_FILE).unlink(missing_ok=True)
