"""Envelopes: the encoding of the specification, and signatures that hold for one type and payload only."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from securebench.errors import IntegrityError
from securebench.records.dsse import Envelope, decode_envelope, pae, sign
from securebench.records.keys import load_signing_key, signature_holds

TYPE = "application/vnd.in-toto+json"


def test_encoding_is_that_of_the_specification() -> None:
    # The example of the DSSE v1 protocol document.
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("", b"") == b"DSSEv1 0  0 "
    assert pae("ü", b"\x00\xff") == b"DSSEv1 2 \xc3\xbc 2 \x00\xff"  # bytes, not characters


def test_signature_holds_for_exactly_what_was_signed(tmp_path: Path) -> None:
    key, other = load_signing_key(None, tmp_path, {}), load_signing_key(None, tmp_path, {})
    envelope = sign(TYPE, b"payload", key)
    assert decode_envelope(envelope.encode(), "x") == envelope
    assert envelope.verified_by(key.id)
    assert not envelope.verified_by(other.id)
    assert not envelope.verified_by("ed25519:")
    assert not Envelope(TYPE, b"other", envelope.signatures).verified_by(key.id)
    assert not Envelope("text/plain", b"payload", envelope.signatures).verified_by(key.id)
    assert not Envelope(TYPE, b"payload", ((other.id, envelope.signatures[0][1]),)).verified_by(other.id)
    assert not Envelope(TYPE, b"payload", ((key.id, b"short"),)).verified_by(key.id)
    # A second signature does no harm to the first.
    both = Envelope(TYPE, b"payload", (*envelope.signatures, *sign(TYPE, b"payload", other).signatures))
    assert both.verified_by(key.id)
    assert both.verified_by(other.id)


def test_payload_cannot_be_shifted_into_the_type(tmp_path: Path) -> None:
    key = load_signing_key(None, tmp_path, {})
    signature = key.sign(pae("a 1 b", b"c"))
    assert not signature_holds(key.id, signature, pae("a", b"b 1 c"))


@pytest.mark.parametrize(
    "change",
    [
        {"payload": "not base64!"},
        {"payload": "YQ"},  # without padding
        {"payload": "YQ==\n"},
        {"payload": 1},
        {"payloadType": None},
        {"signatures": []},
        {"signatures": [{"keyid": "x"}]},
        {"signatures": [{"keyid": "x", "sig": "!"}]},
        {"signatures": [{"keyid": "x", "sig": "YQ==", "more": 1}]},
        {"more": 1},
    ],
)
def test_anything_that_is_no_envelope_is_refused(change: dict[str, object]) -> None:
    value = {
        "payload": base64.b64encode(b"x").decode(),
        "payloadType": "t",
        "signatures": [{"keyid": "k", "sig": "YQ=="}],
    }
    assert decode_envelope(json.dumps(value).encode(), "s").payload == b"x"
    with pytest.raises(IntegrityError, match=r"^s: not a DSSE envelope"):
        decode_envelope(json.dumps(value | change).encode(), "s")


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000, b" " * (5 * 2**20)])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"^s: "):
        decode_envelope(data, "s")
