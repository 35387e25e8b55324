"""Value → canonical bytes (RFC 8785) → digest. Two values are the same evidence if their digests are equal."""

from __future__ import annotations

import hashlib
from typing import Any


def digest_bytes(data: bytes) -> str:
    """`sha256:…` of raw bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def canonical_bytes(value: Any) -> bytes:
    """The one way to write a JSON value down. Raises ValueError for what RFC 8785 has no form for: integers beyond
    2**53, lone surrogates, numbers that are not finite."""
    import rfc8785

    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ValueError(f"no canonical form: {error}") from error


def digest_value(value: Any) -> str:
    """`sha256:…` of a JSON value, independent of key order and spacing.

    Integers beyond 2**53 and lone surrogates are outside RFC 8785; they are digested under keys that begin with
    NUL, and a key that begins with NUL itself gets one more, so that no two values share a digest."""
    import rfc8785

    return digest_bytes(rfc8785.dumps(_within_ieee(value)))


def _within_ieee(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53 - 1:
        return {"\0int": str(value)}
    if isinstance(value, str):
        return {"\0str": _hex(value)} if _has_surrogate(value) else value
    if isinstance(value, list | tuple):
        return [_within_ieee(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): _within_ieee(item) for key, item in value.items()}
    return value


def _key(key: str) -> str:
    if _has_surrogate(key):
        return f"\0str:{_hex(key)}"
    return f"\0{key}" if key.startswith("\0") else key


def _hex(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").hex()


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
