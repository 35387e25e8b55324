"""The grammar of names in a captured tree, and which link targets stay inside it. Pure.

A name is UTF-8 without control, format or invisible separator characters and without backslash, so that no name can
forge a log line, end a line of a patch, or mean a path elsewhere. It is the grammar of `_paths`, one part at a time."""

from __future__ import annotations

import os
import re
import sys
import unicodedata

MAX_NAME = 255
MAX_TARGET = 1024
_FORBIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
IS_UTF8 = sys.getfilesystemencoding() == "utf-8"


is_plain = re.compile(r"[ -.0-\[\]-~]*").fullmatch
"""Whether text has only ordinary ASCII characters: of names one after the other, that each of them has."""


def text_of(name: str) -> str:
    """A name as the system gave it, as UTF-8 text; bytes that are not UTF-8 become lone surrogates."""
    return name if IS_UTF8 else os.fsencode(name).decode("utf-8", "surrogateescape")


def system_name(name: str) -> str | bytes:
    """A name of the grammar as the system takes it."""
    return name if IS_UTF8 else name.encode()


def name_problem(name: str, longest: int = MAX_NAME) -> str | None:
    """The rule that one part of a path breaks, or None."""
    if is_plain(name) and len(name) <= longest and name not in {"", ".", ".."}:
        return None
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "a name that is not UTF-8"
    if len(encoded) > longest:
        return "a name that is too long"
    if any(unicodedata.category(char) in _FORBIDDEN for char in name):
        return "a name with control or invisible characters"
    if "\\" in name:
        return "a name with a backslash"
    return "a name that is no name" if "/" in name or name in {"", ".", ".."} else None


def link_problem(path: str, target: str) -> str | None:
    """Why a link at `path` with this text is not kept, or None.

    Kept is relative text that climbs only at its beginning and no higher than the root: links of this form lead
    nowhere outside, alone or in a chain."""
    if target.startswith("/"):
        return "a link to an absolute path"
    if not target or len(target.encode("utf-8", "surrogateescape")) > MAX_TARGET:
        return "a link with an empty or very long target"
    steps = [step for step in target.split("/") if step not in {"", "."}]
    climbs = next((index for index, step in enumerate(steps) if step != ".."), len(steps))
    if climbs > path.count("/") or ".." in steps[climbs:]:
        return "a link that leads outside or climbs after its beginning"
    if any(name_problem(step) for step in steps[climbs:]):
        return "a link with a target outside the grammar of names"
    return None


def shown(text: str) -> str:
    """For records and terminals: what could move a cursor, forge a line or not be encoded is spelled out."""
    if text.isascii() and text.isprintable():
        return text
    raw = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in raw)
