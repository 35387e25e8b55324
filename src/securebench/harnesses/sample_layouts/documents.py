"""Samples in one JSON document: predictions of SWE-bench as a list, or as an object by `instance_id`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, BinaryIO

from securebench import _json
from securebench._schema import found
from securebench.errors import Problem
from securebench.harnesses.sample_layouts.base import MAX_LINE, Piece, Spool
from securebench.harnesses.sample_layouts.json_parts import JsonParts
from securebench.harnesses.samples import CANDIDATE_KEYS, TASK_KEYS

_FIRST = re.compile(rb'\s*\{\s*"((?:[^"\\]|\\.){0,1000})"\s*:\s*(.)', re.DOTALL)


class Shape(Enum):
    """What the beginning of a file says it is."""

    LINES = "one JSON object per line"
    LIST = "a list of predictions"
    KEYED = "predictions by instance_id"
    INSPECT = "a log of Inspect"


def shape_of(head: bytes) -> Shape:
    """Of the first bytes of a file, up to a line's most. A file that could be lines is read as lines."""
    text = head.lstrip(b" \t\r\n")
    if text.startswith(b"["):
        return Shape.LIST
    try:
        first: Any = _json.loads(text.partition(b"\n")[0])
    except _json.JsonError:
        return _cut_shape(text)
    if not isinstance(first, dict) or any(key in first for key in (*TASK_KEYS, *CANDIDATE_KEYS)):
        return Shape.LINES
    if "eval" in first and "version" in first:
        return Shape.INSPECT
    return Shape.KEYED if first and all(isinstance(value, dict) for value in first.values()) else Shape.LINES


def _cut_shape(text: bytes) -> Shape:
    """Where the first line is no object by itself: by the first key, and what its value begins with."""
    match = _FIRST.match(text)
    if match is None:
        return Shape.LINES
    if match[1] == b"version" or (match[1] == b"eval" and match[2] == b"{"):
        return Shape.INSPECT
    return Shape.KEYED if match[2] == b"{" else Shape.LINES


class Predictions:
    """A `Reading` of a list, or of an object by id."""

    def __init__(self, file: BinaryIO, name: str, spool: Spool, keyed: bool) -> None:
        self.file = spool.file
        self._name = name
        self._spool = spool
        self._keyed = keyed
        self._parts = JsonParts(file, MAX_LINE)

    @property
    def digest(self) -> str:
        return self._parts.digest

    def pieces(self) -> Iterator[Piece | Problem]:
        parts = self._parts
        try:
            if self._keyed:
                for task, line in parts.members():
                    yield self._piece(_named(parts.value(), task), line)
            else:
                for line in parts.elements():
                    yield self._piece(parts.value(), line)
            parts.end()
        except _json.JsonError as error:
            yield Problem(self._name, parts.line, "", str(error))

    def _piece(self, value: Any, line: int) -> Piece | Problem:
        if isinstance(value, str):
            return Problem(self._name, line, "", value)
        if not isinstance(value, dict):
            return Problem(self._name, line, "", f"expected an object, found {found(value)}")
        return self._spool.piece(value, self._name, line)


def _named(value: Any, task: str) -> Any:
    """The prediction with its task, or in words why it has none."""
    if not isinstance(value, dict):
        return f"{task[:100]!r}: expected an object with model_patch, found {found(value)}"
    for key in TASK_KEYS:
        if key in value and value[key] != task:
            return f"stands under {task[:100]!r} and names another task itself"
    return value if any(key in value for key in TASK_KEYS) else {"instance_id": task, **value}
