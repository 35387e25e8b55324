"""Keep the pack's private values out of everything the trusted side writes.

A private text of at least `MIN_LENGTH` characters is scrubbed wherever it occurs, also JSON-escaped, URL-encoded,
HTML-escaped, hex or base64. Shorter ones (`A`, `42`) would blank innocent text, so they are scrubbed only where a
whole text equals one. A candidate's own bytes are never passed through here: blanking what it got right would
tell which values are right, and a record must hold what was judged."""

from __future__ import annotations

import base64
import html
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
        self._long = leaves - self._short
        spellings = {spelling for leaf in self._long for spelling in _spellings(leaf)}
        # Longest first, so that a value that contains another is scrubbed whole.
        self._spellings = [(_fold(text), text) for text in sorted(spellings, key=lambda text: (-len(text), text))]

    def text(self, text: str) -> str:
        if text.strip() in self._short:
            return REDACTED
        folded = _fold(text)
        # A pattern of all spellings can be megabytes; one of those that do occur is nearly always empty.
        present = [re.escape(spelling) for fold, spelling in self._spellings if fold in folded]
        return re.sub("|".join(present), REDACTED, text, flags=re.IGNORECASE) if present else text

    def value(self, value: Any) -> Any:
        """A plain JSON copy of a value with every text scrubbed, keys included. Total: it never fails to serialise."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            return REDACTED if str(value) in self._long else value
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item) for item in value]
        return self.text(str(value))


def _fold(text: str) -> str:
    """Lower case, one character for one."""
    lower = text.lower()
    return (
        lower if len(lower) == len(text) else "".join(char if len(char.lower()) > 1 else char.lower() for char in text)
    )


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
    yield html.escape(text)
    yield quote(raw)
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
