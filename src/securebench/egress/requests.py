"""Reads a request for the proxy: what it asks for, and whether it says so in exactly one way.

h11 parses; before that the raw lines are held to a stricter form than h11's own, because what two parsers read
differently is how a second request is smuggled past one of them:

- CRLF ends every line, no line is folded, no NUL.
- At most one Content-Length, of plain digits; or one `Transfer-Encoding: chunked`; never both. None with CONNECT.
- At most one Host, and it names what the request line names.
- CONNECT takes `host:port`. Any other method takes `http://host[:80]/…`, without user information or fragment.
- No Upgrade.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import h11

from securebench.egress.decisions import Reason, Refused, shown
from securebench.egress.names import requested_authority
from securebench.egress.rules import PLAIN_PORT

MAX_HEAD = 32 * 1024
MAX_FIELDS = 128
END = b"\r\n\r\n"
HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect"),
        *(b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"http2-settings"),
    )
)
_ABSOLUTE = re.compile(rb"http://([^/?#]*)([/?][!-~]*)?", re.IGNORECASE)
_DIGITS = re.compile(rb"[0-9]{1,18}")

Fields = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Ask:
    """What a client asks for: a tunnel to a host, or one plain request to it, as it will be sent on."""

    tunnel: bool
    host: str
    port: int
    method: bytes = b""
    target: bytes = b""
    fields: tuple[tuple[bytes, bytes], ...] = ()


def raw_fields(head: bytes) -> Fields:
    """The header lines of a request's head, the empty line included in `head`. Raises Refused."""
    lines = head.removesuffix(END).split(b"\r\n")
    if any(b"\r" in line or b"\n" in line or b"\0" in line or not line for line in lines):
        raise Refused(Reason.MALFORMED)
    if len(lines) > MAX_FIELDS or any(line[:1] in b" \t" for line in lines):
        raise Refused(Reason.MALFORMED)
    pairs = (line.partition(b":") for line in lines[1:])
    return [(name.lower(), value.strip(b" \t")) for name, _, value in pairs]


def read_head(head: bytes) -> tuple[h11.Connection, h11.Request, Fields]:
    """Parse a whole head, its empty line included; the connection goes on with the body. Raises Refused."""
    fields = raw_fields(head)
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    try:
        connection.receive_data(head)
        event = connection.next_event()
    except h11.RemoteProtocolError:
        raise Refused(_complaint(fields)) from None
    if not isinstance(event, h11.Request):
        raise Refused(Reason.MALFORMED)
    return connection, event, fields


def _complaint(fields: Fields) -> Reason:
    """h11 does not say what it did not like in a form one could count."""
    try:
        _check_framing(fields, b"1.1", tunnel=False)
    except Refused as refused:
        return refused.reason
    return Reason.MALFORMED


def read_ask(request: h11.Request, fields: Fields) -> Ask:
    """What a parsed request asks for. Raises Refused."""
    tunnel = request.method == b"CONNECT"
    if request.http_version not in (b"1.0", b"1.1"):
        raise Refused(Reason.MALFORMED)
    _check_framing(fields, request.http_version, tunnel=tunnel)
    names = {name for name, _ in fields}
    if b"upgrade" in names or b"http2-settings" in names:
        raise Refused(Reason.UPGRADE)
    if tunnel:
        host, port = requested_authority(request.target)
        _check_host(fields, host, port, default_port=port)
        return Ask(True, host, port)
    return _plain(request, fields)


def _plain(request: h11.Request, fields: Fields) -> Ask:
    found = _ABSOLUTE.fullmatch(request.target)
    if found is None:
        raise Refused(Reason.NOT_PROXIED)
    authority, rest = found[1], found[2] or b""
    if b"#" in rest:
        raise Refused(Reason.MALFORMED)
    host, port = requested_authority(authority, PLAIN_PORT)
    _check_host(fields, host, port, default_port=PLAIN_PORT)
    target = rest if rest.startswith(b"/") else b"/" + rest
    kept = [(b"host", host.encode("ascii")), *without_hops(fields, also=b"host"), (b"connection", b"close")]
    if (b"transfer-encoding", b"chunked") in [(name, value.lower()) for name, value in fields]:
        kept.append((b"transfer-encoding", b"chunked"))
    return Ask(False, host, port, request.method, target, tuple(kept))


def without_hops(fields: Fields, also: bytes = b"") -> Fields:
    """The fields that are meant for the far end, without those a Connection field names."""
    named = {
        token.strip(b" \t").lower() for name, value in fields if name == b"connection" for token in value.split(b",")
    }
    named -= {b"content-length"}  # how long a body is, is not for anybody to hide
    return [(name, value) for name, value in fields if name not in HOP_BY_HOP | named | {also}]


def _check_framing(fields: Fields, version: bytes, *, tunnel: bool) -> None:
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1 or (tunnel and (lengths or codings)):
        raise Refused(Reason.FRAMING)
    if lengths and not _DIGITS.fullmatch(lengths[0]):
        raise Refused(Reason.FRAMING)
    if codings and (codings[0].lower() != b"chunked" or version != b"1.1"):
        raise Refused(Reason.FRAMING)


def _check_host(fields: Fields, host: str, port: int, default_port: int) -> None:
    """Old clients leave Host out of CONNECT; h11 lets nobody leave it out of HTTP/1.1."""
    values = [value for name, value in fields if name == b"host"]
    if len(values) > 1:
        raise Refused(Reason.HOST_MISMATCH)
    for value in values:
        try:
            same = requested_authority(value, default_port) == (host, port)
        except Refused:
            same = False
        if not same:
            raise Refused(Reason.HOST_MISMATCH)


def asked_for(request: h11.Request) -> tuple[str, str]:
    """Host and port as written, for the log only. Nothing of the path: it may carry anything."""
    authority = request.target
    if request.method != b"CONNECT":
        authority = re.split(rb"[/?#]", authority.partition(b"//")[2], maxsplit=1)[0]
    authority = authority.rpartition(b"@")[2]  # what stands before it may be a password
    host, colon, port = authority.rpartition(b":")
    return (shown(host), shown(port)) if colon else (shown(authority), "")
