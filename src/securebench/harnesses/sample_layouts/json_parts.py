"""A JSON document too large to be held, read part by part: its members or elements one after the other, each strict
and bounded. What is wrong is told with its line."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterator
from typing import BinaryIO

from securebench import _json
from securebench._json import Incomplete, Json, JsonError
from securebench.harnesses.sample_layouts.base import CHUNK

MAX_MEMBERS = 1_000_000
_BLANKS = re.compile(r"[ \t\r\n]+")


class JsonParts:
    """A place in a document, which only moves on. After `end` the digest is that of all its bytes."""

    def __init__(self, file: BinaryIO, most: int, *, nan_is_null: bool = False) -> None:
        self.line = 1
        self._file = file
        self._most = most
        self._nan_is_null = nan_is_null
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._sha = hashlib.sha256()
        self._text, self._at, self._ended = "", 0, False

    @property
    def digest(self) -> str:
        return f"sha256:{self._sha.hexdigest()}"

    def peek(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            end = self._at if blanks is None else blanks.end()
            self.line += self._text.count("\n", self._at, end)
            self._at = end
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def value(self) -> Json:
        """The whole value that begins here. Raises JsonError."""
        self.peek()
        while True:
            try:
                value, end = _json.decode(self._text, self._at, nan_is_null=self._nan_is_null)
            except Incomplete:
                if self._more():
                    continue
                raise
            if end == len(self._text) and isinstance(value, int | float) and self._more():
                continue  # it may have further digits
            self.line += self._text.count("\n", self._at, end)
            self._at = end
            return value

    def elements(self) -> Iterator[int]:
        """Goes to each element of the list that begins here, and says in which line it does; the caller reads it."""
        yield from self._parts("[", "]")

    def members(self) -> Iterator[tuple[str, int]]:
        """The same with the values of an object, and their keys. Raises JsonError, also for a key that comes twice."""
        seen: set[str] = set()
        for _ in self._parts("{", "}"):
            line, key = self.line, self.value()
            if not isinstance(key, str):
                raise JsonError("not JSON: Expecting a property name enclosed in double quotes")
            if key in seen:
                raise JsonError(f"duplicate key {key[:80]!r}")
            seen.add(key)
            if len(seen) > MAX_MEMBERS:
                raise JsonError(f"an object with more than {MAX_MEMBERS} members")
            self._take(":")
            self.peek()
            yield key, line

    def end(self) -> None:
        """Raises JsonError where anything follows."""
        if self.peek():
            raise JsonError("not JSON: Extra data")

    def _parts(self, opening: str, closing: str) -> Iterator[int]:
        self._take(opening)
        if self.peek() == closing:
            return self._take(closing)
        while True:
            self.peek()
            yield self.line
            if self.peek() != ",":
                return self._take(closing)
            self._take(",")

    def _take(self, char: str) -> None:
        if self.peek() != char:
            raise JsonError(f"not JSON: Expecting {char!r}")
        self._at += 1

    def _more(self) -> bool:
        """Twice as much each time, so that a long part is not read again and again. Raises JsonError."""
        if self._ended:
            return False
        left = self._text[self._at :]
        if len(left) > self._most:
            raise JsonError(f"a part is longer than {self._most} characters")
        data = self._file.read(max(CHUNK, len(left)))
        self._sha.update(data)
        self._ended = not data
        try:
            self._text, self._at = left + self._decoder.decode(data, final=self._ended), 0
        except UnicodeDecodeError as error:
            raise JsonError(f"not UTF-8: byte 0x{error.object[error.start]:02x}") from None
        return True
