"""Samples as lines: read where they stand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

from securebench.errors import Problem
from securebench.harnesses.sample_layouts import base
from securebench.harnesses.sample_layouts.base import Piece


class Lines:
    """A `Reading` of one JSON object per line."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file = file
        self._name = name
        self._sha = hashlib.sha256()

    @property
    def digest(self) -> str:
        return f"sha256:{self._sha.hexdigest()}"

    def pieces(self) -> Iterator[Piece | Problem]:
        offset, number, empty = 0, 0, True
        while raw := self.file.readline(base.MAX_LINE + 1):
            number += 1
            if len(raw) > base.MAX_LINE:
                yield Problem(self._name, number, "", f"is longer than {base.MAX_LINE} bytes")
                return
            if offset + len(raw) > base.MAX_BYTES:
                yield Problem(self._name, number, "", f"more than {base.MAX_BYTES} bytes")
                return
            self._sha.update(raw)
            if raw.strip():
                empty = False
                yield Piece(self._name, number, 0, offset, raw.rstrip(b"\r\n"))
            offset += len(raw)
        if empty:
            yield Problem(self._name, 0, "", "holds no sample; write one JSON object per line")
