"""Envelopes: the encoding of the specification, and signatures that hold for one type and payload only."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench._canonical import canonical_bytes
from securebench.errors import IntegrityError
from securebench.records.dsse import Envelope, decode_envelope, pae, sign
from securebench.records.keys import load_signing_key, signature_holds
from securebench.records.plan import decode_plan
from securebench.records.seal import open_statement

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
    assert decode_envelope(canonical_bytes(value), "s").payload == b"x"
    with pytest.raises(IntegrityError, match=r"^s: not a DSSE envelope"):
        decode_envelope(json.dumps(value | change).encode(), "s")


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000, b" " * (5 * 2**20)])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"^s: "):
        decode_envelope(data, "s")


def test_envelope_in_other_bytes_is_refused(tmp_path: Path) -> None:
    data = sign(TYPE, b"payload", load_signing_key(None, tmp_path, {})).encode()
    assert decode_envelope(data + b"\n", "s")
    signature = json.loads(data)["signatures"][0]["sig"].encode()
    assert signature.endswith(b"==")
    last = signature[-3:-2]
    other = bytes([last[0] + 1])
    assert base64.b64decode(signature) == base64.b64decode(signature[:-3] + other + b"==")  # bits nobody reads
    for changed in (data + b" ", json.dumps(json.loads(data)).encode(), data.replace(last + b"==", other + b"==")):
        with pytest.raises(IntegrityError, match="not in the form it was written in"):
            decode_envelope(changed, "s")


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_whatever_bytes_come_the_only_error_is_ours(data: bytes) -> None:
    for read in (lambda: decode_envelope(data, "s"), lambda: open_statement(data, "s"), lambda: decode_plan(data)):
        with pytest.raises(IntegrityError):
            read()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["payload", "payloadType", "signatures", "keyid", "sig", "_type", "subject"]), inner)))  # fmt: skip
def test_whatever_json_comes_the_only_error_is_ours(value: object) -> None:
    data = json.dumps(value).encode()
    for read in (decode_envelope, open_statement, decode_plan):
        with pytest.raises(IntegrityError):
            read(data, "s")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["_type", "subject", "predicateType", "predicate", "key", "id"]), inner)))  # fmt: skip
def test_whatever_a_signed_statement_says_the_only_error_is_ours(value: object) -> None:
    envelope = sign(TYPE, json.dumps(value).encode(), KEY)
    with pytest.raises(IntegrityError):
        open_statement(envelope.encode(), "s")


KEY = load_signing_key(None, Path("/nonexistent"), {})
