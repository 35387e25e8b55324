"""Subresource integrity as package registries write it: `sha512-` and 64 bytes in base 64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os

from securebench._fs import CHUNK
from securebench.errors import IntegrityError

_ALGORITHM = "sha512"


def parse_integrity(text: str) -> bytes:
    """The digest an integrity names. Raises ValueError unless it is one strict `sha512-…`."""
    algorithm, _, encoded = text.partition("-")
    if algorithm != _ALGORITHM:
        raise ValueError("expected an integrity that begins with sha512-")
    try:
        digest = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise ValueError("expected base 64 after sha512-") from None
    if len(digest) != 64 or base64.b64encode(digest).decode() != encoded:
        raise ValueError("expected 64 bytes in base 64 after sha512-")
    return digest


def integrity_of(descriptor: int) -> str:
    """The integrity of the whole file, read from its beginning."""
    sha = hashlib.sha512()
    position = 0
    while chunk := os.pread(descriptor, CHUNK, position):
        sha.update(chunk)
        position += len(chunk)
    return f"{_ALGORITHM}-{base64.b64encode(sha.digest()).decode()}"


def verify_integrity(what: str, found: str, expected: str, promised_by: str) -> None:
    """Raises IntegrityError unless both name the same digest."""
    try:
        same = parse_integrity(found) == parse_integrity(expected)
    except ValueError as error:
        raise IntegrityError(f"{what}: {promised_by} gives an integrity that cannot be used: {error}") from None
    if not same:
        raise IntegrityError(
            f"{what} has integrity {found}; {promised_by} promised {expected}. Nothing of it was used: "
            "what came is not what was published, or what was published was replaced"
        )
