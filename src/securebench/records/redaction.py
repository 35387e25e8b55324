"""Keep the pack's private values out of everything the trusted side writes.

A private text of at least `MIN_LENGTH` characters is scrubbed wherever it occurs, also JSON-escaped, URL-encoded,
hex or base64. Shorter ones (`A`, `42`) would blank innocent text, so they are scrubbed only where a whole field
equals one. A candidate's own bytes are never passed through here: blanking what it got right would tell which
values are right, and a record must hold what was judged."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from securebench._json import Json
from securebench.resources import REDACTED

MIN_LENGTH = 5


class Redactor:
    """Scrubs the private values of one task."""

    def __init__(self, secrets: Iterable[Json]) -> None:
        leaves = {text for secret in secrets for text in _leaves(secret)}
        self._short = {leaf for leaf in leaves if len(leaf) < MIN_LENGTH}
        long = {leaf for leaf in leaves if len(leaf) >= MIN_LENGTH}
        spellings = {spelling for leaf in long for spelling in _spellings(leaf)}
        # Longest first, so that a value that contains another is scrubbed whole.
        ordered = sorted(spellings, key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE) if ordered else None

    def text(self, text: str) -> str:
        if text in self._short:
            return REDACTED
        return self._pattern.sub(REDACTED, text) if self._pattern else text

    def value(self, value: Any) -> Any:
        """A plain JSON copy of a value with every text scrubbed, keys included. Total: it never fails to serialise."""
        if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item) for item in value]
        return self.text(str(value))


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _spellings(text: str) -> Iterator[str]:
    raw = text.encode("utf-8", "surrogatepass")
    yield text
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    yield quote(raw, safe="")
    yield quote_plus(raw)
    yield raw.hex()
    yield from _base64_cores(raw)


def _base64_cores(raw: bytes) -> Iterator[str]:
    """The characters every base64 text contains that holds `raw` at any offset."""
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + raw).decode().rstrip("=")
        start = (0, 2, 3)[lead]
        core = encoded[start : len(encoded) - (1 if (lead + len(raw)) % 3 else 0)]
        if len(core) >= MIN_LENGTH:
            yield core
            yield core.replace("+", "-").replace("/", "_")
