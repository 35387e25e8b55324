"""Names and ports as clients write them. What is checked here is the very value that is resolved and dialled."""

from __future__ import annotations

import re

from securebench._domains import canonical_domain
from securebench.egress.decisions import Reason, Refused

__all__ = ["canonical_domain", "requested_authority", "requested_domain"]

_PORT = re.compile(rb"[1-9][0-9]{0,4}")


def requested_domain(raw: bytes) -> str:
    """The canonical name in bytes a client sent. Raises Refused."""
    try:
        return canonical_domain(raw.decode("ascii"))
    except ValueError:  # what is not ASCII included
        raise Refused(Reason.BAD_NAME) from None


def requested_authority(raw: bytes, default_port: int | None = None) -> tuple[str, int]:
    """`host:port`, or `host` where there is a default port. Raises Refused.

    A port is its plain decimal digits: no leading zero, no sign, no space, at most 65535."""
    host, colon, port = raw.partition(b":")
    name = requested_domain(host)
    if not colon and default_port is not None:
        return name, default_port
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise Refused(Reason.BAD_PORT)
    return name, int(port)
