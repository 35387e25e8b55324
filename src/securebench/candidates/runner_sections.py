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
    *(("tool", name) for name in ("tox", "coverage", "nox", "behave", "hatch", "pdm", "uv", "pixi", "rye", "poe")),
    ("tool", "poetry", "plugins"),
    ("tool", "flit", "entrypoints"),
    ("tool", "flit", "metadata"),
    ("tool", "setuptools", "dynamic", "entry-points"),
    ("project", "entry-points"),
    ("build-system",),
)
_INI = re.compile(
    r".*pytest.*|tox(?::.*)?|testenv.*|coverage:.*|nosetests|aliases|options\.entry_points|unittest|behave.*|default"
)
_HEADER = re.compile(r"\[([^\]]*)\]")
_CLEAR_HEADER = re.compile(r"\[[^\[\]#;]+\]")
_PLUG_INS = re.compile(r"entry_points|pytest11", re.IGNORECASE)
_MAX_DOTS = 200


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
    return _ini_parts(old) != _ini_parts(new)


def _toml_parts(text: str) -> list[str]:
    if any(line.count(".") > _MAX_DOTS for line in text.splitlines()):
        raise ValueError("tables so deep that reading them takes for ever")
    document = tomllib.loads(text)
    tools = document.get("tool")
    named = sorted(name for name in tools if "pytest" in name) if isinstance(tools, dict) else []
    return [repr(_at(document, path)) for path in (*_TOML, *(("tool", name) for name in named))] + named


def _at(document: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return None
        document = document[part]
    return document


def _ini_parts(text: str) -> list[str]:
    """Every line that some reader may find in a section of a runner.

    Readers disagree about what ends a line, and whether an indented header, one without a name or one with something
    behind it is one. So whatever looks like a runner's header begins such a section, and only what is a header to all
    of them ends it."""
    kept: list[str] = []
    inside = False
    for line in re.split(r"\r\n|\r|\n", text):
        headers = [_HEADER.match(piece.strip()) for piece in line.splitlines()]
        if any(header is not None and _INI.fullmatch(header[1].strip().casefold()) for header in headers):
            inside = True
        elif len(headers) == 1 and _CLEAR_HEADER.fullmatch(line.rstrip(" \t")):
            inside = False
        if (inside and line.strip()) or _PLUG_INS.search(line):
            kept.append(line.rstrip())
    return kept
