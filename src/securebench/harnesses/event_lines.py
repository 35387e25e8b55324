"""Event streams that agents' tools print, one JSON object per line, read without trusting a byte of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from securebench import _json

MAX_LINES = 200_000


def events(output: bytes) -> Iterator[dict[str, Any]]:
    """The objects among the lines; whatever else there is, is left out."""
    for line in output.split(b"\n", MAX_LINES)[:MAX_LINES]:
        if line.startswith(b"{"):
            try:
                value = _json.loads(line)
            except _json.JsonError:
                continue
            if isinstance(value, dict):
                yield value


def text_of(value: Any) -> str:
    """Text as it stands, the texts of a list of content blocks, or the JSON of anything else."""
    if isinstance(value, list):
        return "\n".join(_text(block.get("text", "") if isinstance(block, dict) else block) for block in value)
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else _json.dumps(value)
    except RecursionError:
        return ""


def whole(value: Any) -> int | None:
    """A count, or None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
