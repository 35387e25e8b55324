"""What hostile clients write to a proxy: other spellings of hosts and ports, what is no TLS, second requests."""

from __future__ import annotations

import struct

from securebench.audit.plays.network import NOTE, Exchange
from securebench.audit.plays.network_world import ALLOWED, ELSEWHERE, OTHER


def get(host: str | bytes, path: str = "/", *fields: str, body: bytes = b"", method: str = "GET") -> Exchange:
    """A plain request through the proxy."""
    name = host.encode() if isinstance(host, str) else host
    lines = [f"{method} http://".encode() + name + f"{path} HTTP/1.1".encode(), b"Host: " + name]
    return (b"\r\n".join([*lines, *(field.encode() for field in fields), b"", b""]) + body,)


def tunnel(host: str | bytes, *then: bytes, port: str = "443") -> Exchange:
    """A CONNECT, and what is sent into the tunnel."""
    name = host.encode() if isinstance(host, str) else host
    return (b"CONNECT " + name + f":{port} HTTP/1.1\r\nHost: {ALLOWED}:443\r\n\r\n".encode(), *then)


INSIDE = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"


def both_ways(*hosts: str | bytes) -> tuple[Exchange, ...]:
    """Each host asked for as a plain request and as a tunnel."""
    return tuple(way for host in hosts for way in (get(host, "/", "Connection: close"), tunnel(host, INSIDE)))


_NUMBER = int.from_bytes(bytes(map(int, ELSEWHERE.split("."))), "big")
NUMERIC = both_ways(ELSEWHERE, str(_NUMBER), hex(_NUMBER), "0135.0270.0330.043", "0x5d.0xb8.0xd8.0x23", "93.12113955")
V6 = both_ways(f"[::ffff:{ELSEWHERE}]", "[2606:2800:220::35]", "[::1]", "::1")
ENDINGS = both_ways(f"evil{ALLOWED}", f"sub.{ALLOWED}", f"{ALLOWED}.{OTHER}", f"{OTHER}.{ALLOWED}")
NULS = both_ways(f"{OTHER}\0.{ALLOWED}".encode(), f"{OTHER}\0{ALLOWED}".encode())
USERS = both_ways(f"{ALLOWED}@{OTHER}", f"{ALLOWED}:443@{OTHER}", f"{ALLOWED}%40{OTHER}")
MARKS = both_ways(f"{OTHER}#{ALLOWED}", f"{OTHER}?{ALLOWED}", f"{OTHER},{ALLOWED}", f"{OTHER}/{ALLOWED}")
ESCAPES = both_ways(f"{OTHER}%00{ALLOWED}", f"{OTHER}%23.{ALLOWED}", f"{OTHER}%2f{ALLOWED}")
LETTERS = both_ways(f"{OTHER}／{ALLOWED}", f"{OTHER}？{ALLOWED}", f"ｏther.example?{ALLOWED}")
PORTS = tuple(tunnel(ALLOWED, b"NOTE\r\n\r\n", port=port) for port in ("22", "80", "8443", "0443", "65979", "443.0"))
NAMES_WITH_NOTES = both_ways("NOTE.other.example", f"NOTE.{ALLOWED}", f"NOTE{ALLOWED}", "NOTE.other.example.")
OTHER_CASE = both_ways("aLLoWeD.eXaMpLe.", "aLLoWeD.eXaMpLe")

TWO_HOSTS = ((f"GET http://{ALLOWED}/ HTTP/1.1\r\nHost: {OTHER}\r\nConnection: close\r\n\r\n".encode(),),)

INWARDS = ("meta", "private", "loop", "loop6", "mapped", "mixed", "nat64", "zero")


def hello(*names: bytes, more: bytes = b"") -> bytes:
    """The first bytes of a TLS client that names these servers, with further extensions behind."""
    listed = b"".join(b"\0" + struct.pack("!H", len(name)) + name for name in names)
    server_name = struct.pack("!HHH", 0, len(listed) + 2, len(listed)) + listed if names else b""
    extensions = server_name + more
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0"
    body += struct.pack("!H", len(extensions)) + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack("!H", len(message)) + message


def secret(kind: int) -> bytes:
    """An extension that says what it says to the far end only."""
    return struct.pack("!HH", kind, 64) + bytes(64)


_ALLOWED = ALLOWED.encode()
_END = b"\r\n\r\n"
FIRST_BYTES = {
    "plain-http-in-a-tunnel": b"GET /NOTE HTTP/1.1\r\nHost: other.example" + _END,
    "ssh-in-a-tunnel": b"SSH-2.0-NOTE" + _END,
    "tunnel-in-a-tunnel": b"CONNECT NOTE.example:443 HTTP/1.1" + _END,
    "hello-without-a-name": hello() + NOTE + _END,
    "hello-with-two-names": hello(_ALLOWED, OTHER.encode()) + NOTE + _END,
    "hello-for-another": hello(OTHER.encode()) + NOTE + _END,
    "hello-that-hides-its-name": hello(_ALLOWED, more=secret(0xFE0D)) + NOTE + _END,
}


def _second(mark: bytes = NOTE) -> bytes:
    return b"GET /" + mark + b" HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"


def _post(*fields: str, body: bytes) -> tuple[Exchange, ...]:
    return (get(ALLOWED, "/", *fields, body=body, method="POST"),)


_AHEAD = str(len(_second(b"x" * 20)))
SMUGGLED = {
    "after-a-request": (get(ALLOWED, body=_second()),),
    "after-a-body": _post("Content-Length: 2", body=b"ok" + _second()),
    "length-and-chunks": _post("Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + _second()),
    "two-lengths": _post(f"Content-Length: {_AHEAD}", "Content-Length: 0", body=_second()),
    "odd-coding": _post("Transfer-Encoding: xchunked", "Content-Length: 0", body=_second()),
    "space-before-the-colon": _post("Content-Length : 0", body=_second()),
}
