"""The parts of shared configuration files that speak to a test runner. Pure.

`pyproject.toml`, `setup.cfg` and `tox.ini` hold much else that a fix may change; only these parts are compared."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_BYTES = 256 * 1024
FILES = frozenset({"pyproject.toml", "setup.cfg", "tox.ini"})
"""Canonical names of the files this is about."""

_TOML = (
    ("tool", "pytest"),
    ("tool", "tox"),
    ("tool", "coverage"),
    ("tool", "nox"),
    ("tool", "poetry", "plugins"),
    ("project", "entry-points"),
    ("build-system",),
)
_INI = re.compile(r".*pytest.*|tox(?::.*)?|testenv.*|coverage:.*|nosetests|aliases|options\.entry_points|unittest")
_HEADER = re.compile(r"\[([^\]]*)\]")


def runner_parts_differ(name: str, before: bytes, after: bytes) -> bool:
    """Whether what speaks to a runner is not the same. What cannot be read or parsed counts as different."""
    if max(len(before), len(after)) > MAX_BYTES:
        return True
    try:
        old, new = before.decode("utf-8-sig"), after.decode("utf-8-sig")
        if name == "pyproject.toml":
            return _toml_parts(old) != _toml_parts(new)
    except (ValueError, RecursionError):
        return True
    # Readers of INI files disagree whether an indented line can be a header; it must be harmless for both.
    return any(_ini_parts(old, indented) != _ini_parts(new, indented) for indented in (False, True))


def _toml_parts(text: str) -> list[str]:
    document = tomllib.loads(text)
    return [repr(_at(document, path)) for path in _TOML]


def _at(document: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return None
        document = document[part]
    return document


def _ini_parts(text: str, indented: bool) -> list[str]:
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        if header := _HEADER.match(line.strip() if indented else line):
            inside = _INI.fullmatch(header[1].strip().casefold()) is not None
        if inside and line.strip():
            kept.append(line.rstrip())
    return kept
