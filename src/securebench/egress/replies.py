"""What a client is told when it is not let through: which rule, and what the operator can do. Nothing of the inside."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from securebench.egress.decisions import Reason

_BUDGET = "The operator sets this budget for each attempt."
_SENTENCES: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.NOT_ALLOWED: "This host is not allowed. The operator allows it by its exact name in allowed_domains.",
        Reason.BAD_NAME: "A host is asked for by its plain name; IP addresses and other spellings are refused.",
        Reason.BAD_PORT: "Only port 443 for TLS and port 80 for plain HTTP can be reached.",
        Reason.MALFORMED: "This is not a request in the form of HTTP/1.1.",
        Reason.NOT_PROXIED: "This is a proxy: use CONNECT host:443 or an absolute http:// address.",
        Reason.HOST_MISMATCH: "The Host field must name the host of the request line.",
        Reason.FRAMING: "The length of the body must be stated in exactly one way.",
        Reason.PIPELINED: "One connection carries one request.",
        Reason.UPGRADE: "Upgrades to other protocols are refused.",
        Reason.TOO_SLOW: "The request took too long to arrive.",
        Reason.UNRESOLVABLE: "This host is allowed, but its name could not be resolved.",
        Reason.PRIVATE_ADDRESS: "This host is allowed, but has an address that is not public."
        " The operator can declare it in private_domains.",
        Reason.UNREACHABLE: "This host is allowed, but could not be reached.",
        Reason.BAD_REPLY: "This host is allowed, but did not answer in the form of HTTP/1.1.",
        Reason.BYTES_SPENT: f"The bytes of this attempt are used up. {_BUDGET}",
        Reason.CONNECTIONS_SPENT: f"The connections of this attempt are used up. {_BUDGET}",
        Reason.SECONDS_SPENT: f"The time of this attempt is used up. {_BUDGET}",
        Reason.TOO_MANY_OPEN: f"Too many connections are open at once. {_BUDGET}",
        Reason.IDLE: "This host is allowed, but nothing came from it in time.",
    }
)
_STATUS: Mapping[Reason, str] = MappingProxyType(
    {
        **dict.fromkeys((Reason.MALFORMED, Reason.FRAMING, Reason.PIPELINED), "400 Bad Request"),
        Reason.TOO_SLOW: "408 Request Timeout",
        **dict.fromkeys((Reason.UNRESOLVABLE, Reason.UNREACHABLE, Reason.BAD_REPLY), "502 Bad Gateway"),
        Reason.IDLE: "504 Gateway Timeout",
    }
)

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
# A TLS client that was told "established" already understands only these: fatal, access denied; fatal, internal error.
_DENIED = b"\x15\x03\x03\x00\x02\x02\x31"
_FAILED = b"\x15\x03\x03\x00\x02\x02\x50"


def refusal(reason: Reason) -> bytes:
    """The whole reply to a request that is refused."""
    text = _SENTENCES.get(reason, "The connection was ended.")
    body = f"SecureBench egress proxy: {reason.value}\n{text}\n".encode()
    head = (
        f"HTTP/1.1 {_STATUS.get(reason, '403 Forbidden')}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


def tls_refusal(reason: Reason) -> bytes:
    """What is sent into a tunnel instead of a server's answer."""
    if reason is Reason.NOT_TLS:
        return b""
    return _FAILED if reason is Reason.UNREACHABLE else _DENIED
