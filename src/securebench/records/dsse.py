"""DSSE v1 envelopes: a payload, its type, and Ed25519 signatures over both.

A signature is over the pre-authentication encoding (`pae`), so bytes signed as one type mean nothing as another."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field, StringConstraints, ValidationError

from securebench import _json
from securebench._canonical import canonical_bytes
from securebench._schema import ClosedModel
from securebench.errors import IntegrityError

MAX_ENVELOPE = 4 * 2**20
_Base64 = Annotated[str, StringConstraints(max_length=MAX_ENVELOPE)]


class Signer(Protocol):
    """What signs: a key with a name everyone can check."""

    @property
    def id(self) -> str: ...

    def sign(self, data: bytes) -> bytes: ...


class _Signature(ClosedModel):
    keyid: Annotated[str, StringConstraints(max_length=200)]
    sig: _Base64


class _Envelope(ClosedModel):
    payload: _Base64
    payloadType: Annotated[str, StringConstraints(max_length=200)]
    signatures: Annotated[tuple[_Signature, ...], Field(min_length=1, max_length=16)]


@dataclass(frozen=True, slots=True)
class Envelope:
    """A decoded envelope. Nothing in it is believed before `verified_by` says whose it is."""

    payload_type: str
    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]  # key id and signature

    def verified_by(self, keyid: str) -> bool:
        """Whether there is a signature of that key over exactly this payload and type."""
        from securebench.records.keys import signature_holds

        data = pae(self.payload_type, self.payload)
        return any(name == keyid and signature_holds(keyid, sig, data) for name, sig in self.signatures)

    def encode(self) -> bytes:
        """One line of canonical JSON, without its end."""
        return canonical_bytes(
            {
                "payload": base64.b64encode(self.payload).decode(),
                "payloadType": self.payload_type,
                "signatures": [{"keyid": key, "sig": base64.b64encode(sig).decode()} for key, sig in self.signatures],
            }
        )


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes a signature is over: `DSSEv1 LEN TYPE LEN BODY`, lengths in bytes and decimal."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, key: Signer) -> Envelope:
    return Envelope(payload_type, payload, ((key.id, key.sign(pae(payload_type, payload))),))


def decode_envelope(data: bytes, name: str) -> Envelope:
    """Raises IntegrityError for anything that is not an envelope, or one written otherwise than we do: base64 and JSON
    can say the same in many ways, and then a changed byte would go unnoticed."""
    from securebench.records.plan import wrong_fields

    if len(data) > MAX_ENVELOPE:
        raise IntegrityError(f"{name}: {len(data)} bytes; at most {MAX_ENVELOPE} are allowed")
    try:
        value = _Envelope.model_validate_json(_json.dumps(_json.loads(data)))
        envelope = Envelope(
            value.payloadType,
            base64.b64decode(value.payload, validate=True),
            tuple((one.keyid, base64.b64decode(one.sig, validate=True)) for one in value.signatures),
        )
        canonical = envelope.encode() == data.removesuffix(b"\n")
    except ValidationError as error:
        raise IntegrityError(f"{name}: not a DSSE envelope: {'; '.join(wrong_fields(error))}") from None
    except _json.JsonError as error:
        raise IntegrityError(f"{name}: {error}") from error
    except (binascii.Error, ValueError, RecursionError):
        raise IntegrityError(f"{name}: not a DSSE envelope: payload or signature is not base64") from None
    if not canonical:
        raise IntegrityError(f"{name}: not in the form it was written in; it was rewritten since")
    return envelope
