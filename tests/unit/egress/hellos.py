"""ClientHello bytes: those a real client sends, and those only an attacker would."""

from __future__ import annotations

import contextlib
import ssl
import struct


def real_hello(
    name: str | None, *, oldest: ssl.TLSVersion | None = None, newest: ssl.TLSVersion | None = None
) -> bytes:
    """What OpenSSL sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    if oldest:
        context.minimum_version = oldest
    if newest:
        context.maximum_version = newest
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def vector(data: bytes, width: int = 2) -> bytes:
    return len(data).to_bytes(width, "big") + data


def extension(kind: int, data: bytes) -> bytes:
    return struct.pack("!H", kind) + vector(data)


def sni(*names: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(b"".join(bytes([kind]) + vector(name) for name in names)))


def hello(
    extensions: bytes | None, *, version: bytes = b"\x03\x03", session: bytes = b"", suites: bytes = b"\x13\x01"
) -> bytes:
    """The handshake message of a made-up hello."""
    body = version + bytes(32) + vector(session, 1) + vector(suites) + vector(b"\0", 1)
    if extensions is not None:
        body += vector(extensions)
    return b"\x01" + vector(body, 3)


def records(message: bytes, size: int = 16384, version: bytes = b"\x03\x01") -> bytes:
    """A message in records of `size` bytes."""
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16" + version + vector(part) for part in parts)
