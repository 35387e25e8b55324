"""Who is let in. Pure: a request in, the way it asks for out, or a refusal.

1. The name in `Host` is this machine's own loopback with our port. A page of somebody else's whose name was pointed at
   loopback (DNS rebinding) carries its own name there.
2. The method is GET or HEAD, and there is no body: nothing here can be changed.
3. The path is plain: parts of letters, digits, `-` and `_`, each of which is looked up and never opened.
4. Its first part is the token of this start, compared in constant time. Whoever does not have it learns nothing: a
   wrong token, a missing one and a wrong way are the same answer."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from securebench.egress.requests import Fields

_WAY = re.compile(rb"/((?:[A-Za-z0-9_-]{1,100}/)*[A-Za-z0-9_-]{0,100})")
_METHODS = frozenset((b"GET", b"HEAD"))


class Refusal(Exception):
    """Not let in, or nothing is there. Carries what the client is told."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


NOT_FOUND = (404, "There is nothing here. The address that `securebench view` printed is the only way in.")


@dataclass(frozen=True, slots=True)
class Door:
    """The door of one server."""

    token: str
    port: int

    def admit(self, method: bytes, target: bytes, fields: Fields) -> tuple[str, ...]:
        """The parts of the path behind the token; a path that ends in `/` ends in an empty part. Raises Refusal."""
        hosts = [value.lower() for name, value in fields if name == b"host"]
        if hosts not in ([name] for name in self._names()):
            raise Refusal(403, "This server answers to its own address alone.")
        if method not in _METHODS:
            raise Refusal(405, "This server only shows; use GET.")
        if any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in fields):
            raise Refusal(400, "A request here has no body.")
        found = _WAY.fullmatch(target)
        parts: Sequence[bytes] = found[1].split(b"/") if found else (b"",)
        if not hmac.compare_digest(parts[0], self.token.encode()) or len(parts) < 2:
            raise Refusal(*NOT_FOUND)
        return tuple(part.decode("ascii") for part in parts[1:])

    def _names(self) -> list[bytes]:
        return [f"{name}:{self.port}".encode() for name in ("127.0.0.1", "localhost", "[::1]")]
