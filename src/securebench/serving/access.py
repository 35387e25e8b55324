"""Who may ask, decided from the head of a request alone. Pure.

1. The Host field names this server: an IP address, `localhost`, or a name the operator allowed. A page in a browser
   whose own name was made to lead here (DNS rebinding) names itself, and is refused.
2. Exactly one Authorization field holds the token, as `Bearer`. Comparing takes the same time for every wrong one.
3. Nothing else lets anybody in: no cookie, no query, no address. Nothing about the server is told before that."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Collection

from securebench._http import Headers

LEAST_TOKEN = 16
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")


class Refusal(Exception):
    """A request that is not carried out. The message goes to whoever asked."""

    def __init__(self, status: int, code: str, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers


class Gate:
    """Lets requests in, or raises Refusal."""

    def __init__(self, token: str, names: Collection[str] = ()) -> None:
        self._digest = _digest(token)
        self._names = {name.lower().rstrip(".") for name in (*names, "localhost")}

    def check(self, headers: Headers) -> None:
        """Raises Refusal."""
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1 or not self._is_ours(hosts[0].strip()):
            raise Refusal(421, "wrong_host", "this server does not go by that name; the operator can allow it")
        given = [value for name, value in headers if name == "authorization"]
        scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        if not hmac.compare_digest(_digest(token.strip()), self._digest) or scheme.lower() != "bearer":
            raise Refusal(
                401,
                "unauthorized",
                "send the server's token: Authorization: Bearer TOKEN",
                ("WWW-Authenticate", 'Bearer realm="securebench"'),
            )

    def _is_ours(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1].strip("[]").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return not found[1].startswith("[") and name.rstrip(".") in self._names
        return True


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
