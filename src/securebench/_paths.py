"""The grammar of relative paths in packs and workspaces, and the key under which two of them collide."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath

MAX_PATH = 1024
MAX_NAME = 255


def relative_path(text: str) -> PurePosixPath:
    """Parse a path that must stay beneath its root. Raises ValueError with the rule that was broken.

    Rules: not empty, relative, `/` as separator, no `..`, `.` or empty part, no backslash, no control or
    format character, valid UTF-8, at most 1024 bytes in all and 255 in a part."""
    if not text:
        raise ValueError("path is empty")
    if "\\" in text:
        raise ValueError("path contains a backslash; use '/'")
    if text.startswith("/"):
        raise ValueError("path is absolute; it must be relative")
    if any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in text):
        raise ValueError("path contains a control or invisible character")
    if len(text.encode()) > MAX_PATH:
        raise ValueError(f"path is longer than {MAX_PATH} bytes")
    parts = text.removesuffix("/").split("/")
    for part in parts:
        if part == "..":
            raise ValueError("path contains '..'; it must stay beneath its root")
        if part in {"", "."}:
            raise ValueError("path contains an empty part or '.'")
        if len(part.encode()) > MAX_NAME:
            raise ValueError(f"a part of the path is longer than {MAX_NAME} bytes")
    return PurePosixPath(*parts)


def canonical_key(path: PurePosixPath | str) -> tuple[str, ...]:
    """Parts after NFC and casefold: equal keys may name the same file on some file system."""
    return tuple(
        unicodedata.normalize("NFC", unicodedata.normalize("NFC", part).casefold())
        for part in PurePosixPath(path).parts
    )


def overlaps(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """True when one key equals the other or lies beneath it."""
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]
