"""Programs that lay out files: what an agent does in its sandbox, as data."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    target: str


@dataclass(frozen=True, slots=True)
class Fifo:
    pass


Content = str | Link | Fifo
"""A text that begins with `#!` is executable."""
Files = tuple[tuple[str, Content], ...]

_LAYS = """
import json, os
for path, kind, text in json.loads({entries!r}):
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if kind == "link":
            os.symlink(text, path)
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o755 if text.startswith("#!") else 0o644)
    except OSError:
        if not path.startswith("/"):
            raise
"""


def laying(*files: tuple[str, Content]) -> str:
    """A program that makes them where it runs; those at absolute paths as far as it may."""
    entries = [[path, _kind(content), getattr(content, "target", content)] for path, content in files]
    return _LAYS.format(entries=json.dumps(entries, default=lambda _: ""))


def _kind(content: Content) -> str:
    return {Link: "link", Fifo: "fifo"}.get(type(content), "text")
