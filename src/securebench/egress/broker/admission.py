"""Which request this is and whether the one who asks may ask: decided from its head alone, before its body is read.

- The path is one of the listed ones, letter by letter: nothing is decoded, resolved or repaired.
- A query holds listed parameters only, each once, each of its listed form.
- Every credential that is shown is this attempt's placeholder; comparing takes the same time for every wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hmac import compare_digest

from securebench.egress.broker.access import ModelAccess
from securebench.egress.broker.refusal import Refused
from securebench.egress.providers.schema import Endpoint

_TARGET = re.compile(r"(/[A-Za-z0-9._~:@/-]{0,2000})(?:\?([A-Za-z0-9._~:+=&-]{0,2000}))?")
_MODEL_SEGMENT = re.compile(r"[A-Za-z0-9._:@-]{1,200}")

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Route:
    """A listed endpoint of a provider that was asked for, and the rest of its URL."""

    access: ModelAccess
    endpoint: Endpoint
    path: str  # below the provider's base URL
    query: str

    @property
    def url(self) -> str:
        return self.access.base_url + self.path + (f"?{self.query}" if self.query else "")


def access_of(accesses: Iterable[ModelAccess], target: str) -> ModelAccess | None:
    """Whose part of the broker a target lies in, be it well formed or not."""
    name = target[1:].partition("/")[0].partition("?")[0]
    return next((access for access in accesses if access.provider.name == name), None)


def route(access: ModelAccess, method: str, target: str) -> Route:
    """The endpoint of a request as it came over HTTP. Raises Refused."""
    match = _TARGET.fullmatch(target)
    prefix = f"/{access.provider.name}{access.provider.agent.mount}"
    if match is None or not match[1].startswith(f"{prefix}/"):
        raise _unknown_path(access)
    return route_path(access, method, match[1][len(prefix) :], match[2] or "")


def route_path(access: ModelAccess, method: str, path: str, query: str = "") -> Route:
    """The endpoint of a path below the provider's base URL. Raises Refused."""
    fitting = [endpoint for endpoint in access.provider.endpoints if _fits(endpoint, path)]
    if not fitting:
        raise _unknown_path(access)
    for endpoint in fitting:
        if endpoint.method == method:
            _check_query(endpoint, query)
            if "{model}" in endpoint.path:
                check_model(access, path.rpartition("/")[2])
            return Route(access, endpoint, path, query)
    raise Refused(405, "method_not_allowed", f"this path takes {fitting[0].method} only")


def _fits(endpoint: Endpoint, path: str) -> bool:
    listed, asked = endpoint.path.split("/"), path.split("/")
    return len(listed) == len(asked) and all(
        (part == "{model}" and _MODEL_SEGMENT.fullmatch(word) is not None and word not in {".", ".."}) or part == word
        for part, word in zip(listed, asked, strict=True)
    )


def _check_query(endpoint: Endpoint, query: str) -> None:
    names = set()
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        pattern = endpoint.query.get(name)
        if pattern is None or name in names or not re.fullmatch(pattern, value):
            raise Refused(400, "invalid_request_error", f"the query parameter {name[:40]!r} is not allowed here")
        names.add(name)


def check_model(access: ModelAccess, model: str) -> None:
    """Raises Refused unless the configuration lets agents use this model."""
    if not access.permits(model):
        raise Refused(
            400, "model_not_allowed", f"the model {model[:80]!r} is not allowed in this run; use {access.model!r}"
        )


def check_placeholder(headers: Headers, placeholder: str) -> None:
    """Raises Refused unless every credential shown, and at least one, is this attempt's placeholder."""
    expected, shown = placeholder.encode(), []
    for name, value in headers:
        if name == "x-api-key":
            shown.append(value.strip().encode())
        elif name == "authorization":
            scheme, _, word = value.strip().partition(" ")
            shown.append(word.strip().encode() if scheme.lower() == "bearer" else b"")
    matches = [compare_digest(word, expected) for word in shown]
    if not matches or not all(matches):
        raise Refused(401, "authentication_error", "the key is not the placeholder of this attempt")


def check_upgrade(headers: Headers) -> None:
    """Raises Refused for a request that wants another protocol. Clients take 426 as: go on with plain HTTP."""
    if any(name == "upgrade" for name, _ in headers):
        raise Refused(426, "upgrade_not_supported", "only plain HTTP requests are served here")


def _unknown_path(access: ModelAccess) -> Refused:
    listed = ", ".join(f"{endpoint.method} {endpoint.path}" for endpoint in access.provider.endpoints)
    return Refused(404, "not_found_error", f"this path is not allowed; allowed are {listed}")
