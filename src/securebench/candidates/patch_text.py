"""Looks at a patch that arrived as text before anything applies it. Pure.

A patch is sections and nothing else: every line belongs to a header, a hunk of the announced length or a binary block.
So nothing hides in prose, and what is not complete is found here. All names of a section must agree. What a section
may change is not decided here but on the outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from securebench.candidates.entry_names import shown
from securebench.errors import CandidateError, FailureReason

MAX_PATCH_BYTES = 32 * 2**20
MAX_SECTIONS = 20_000
_EXTENDED = re.compile(
    r"(?:old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to|"
    r"similarity index|dissimilarity index|index) ."
)
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_BINARY = re.compile(r"(?:literal|delta) \d{1,12}\Z")
_BASE85 = re.compile(r"[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+\Z")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk: its number in its section, and the line of the old file where it begins."""

    number: int
    old_start: int


@dataclass(frozen=True, slots=True)
class Section:
    """What a patch says about one file. `name` is as written, for messages."""

    name: str
    hunks: tuple[Hunk, ...]


def check_patch(text: str) -> tuple[Section, ...]:
    """The sections of a patch. Raises CandidateError naming the line."""
    if not text.strip():
        raise CandidateError(FailureReason.NO_CANDIDATE, "the patch is empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, "the patch is not valid Unicode text") from None
    if size > MAX_PATCH_BYTES:
        message = f"the patch has {size} bytes; at most {MAX_PATCH_BYTES} are allowed"
        raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, message)
    if "\0" in text:
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, "the patch contains a NUL character")
    return tuple(_Scanner(text.removesuffix("\n").split("\n")).sections())


class _Scanner:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def sections(self) -> list[Section]:
        found: list[Section] = []
        while self._at < len(self._lines):
            line = self._line()
            if line.startswith("diff --git "):
                found.append(self._git_section())
            elif line.startswith("--- "):
                found.append(self._plain_section())
            elif line.strip():
                self._refuse("belongs to no section; a patch begins with 'diff --git' and holds nothing else")
            else:
                self._at += 1
            if len(found) > MAX_SECTIONS:
                message = f"the patch has more than {MAX_SECTIONS} sections"
                raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, message)
        return found

    def _line(self) -> str:
        """The line we are at; empty behind the last."""
        return self._lines[self._at] if self._at < len(self._lines) else ""

    def _refuse(self, what: str, at: int | None = None) -> NoReturn:
        number = (self._at if at is None else at) + 1
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, f"line {number} of the patch {what}")

    def _git_section(self) -> Section:
        start, header = self._at, self._line().removeprefix("diff --git ")
        self._at += 1
        moved: dict[str, str] = {}
        while _EXTENDED.match(self._line()):
            key, _, name = self._line().partition(" from " if " from " in self._line()[:12] else " to ")
            if key in {"rename", "copy"}:
                moved["from" if " from " in self._line()[:12] else "to"] = name
            self._at += 1
        if not header.strip():
            self._refuse("names no file", start)
        if moved and not _are_named(header, moved):
            self._refuse("names other files than its rename or copy", start)
        if self._line() == "GIT binary patch":
            self._binary()
            return Section(shown(header), ())
        if not self._line().startswith("--- "):
            return Section(shown(header), ())
        old, new = self._names()
        expected = f"{old or _other(new)} {new or _other(old)}"
        if header.rstrip() != expected:
            self._refuse(f"says {shown(header)[:200]}, its section says {shown(expected)[:200]}", start)
        for end, side in (("from", old), ("to", new)):
            if moved.get(end, _stripped(side)) != _stripped(side):
                self._refuse("names other files for a rename or copy than its section", start)
        return Section(shown(_stripped(new or old)), self._hunks(new or old))

    def _plain_section(self) -> Section:
        old, new = self._names()
        if old and new and _stripped(old) != _stripped(new):
            self._refuse("names another file than the line before it", self._at - 1)
        return Section(shown(_stripped(new or old)), self._hunks(new or old))

    def _names(self) -> tuple[str, str]:
        """What follows `---` and `+++`, without a time; empty for /dev/null."""
        old = self._line()
        self._at += 1
        new = self._line()
        if not new.startswith("+++ "):
            self._refuse("must begin with '+++', after one that begins with '---'")
        self._at += 1
        names = [line[4:].partition("\t")[0].rstrip("\r") for line in (old, new)]
        cleaned = ["" if name == "/dev/null" else name for name in names]
        if not any(map(_stripped, cleaned)):
            self._refuse("names no file", self._at - 1)
        return cleaned[0], cleaned[1]

    def _hunks(self, name: str) -> tuple[Hunk, ...]:
        found: list[Hunk] = []
        shift = 0
        while (match := _HUNK.match(self._line())) is not None:
            hunk = Hunk(len(found) + 1, int(match[1]))
            old, new = (1 if match[group] is None else int(match[group]) for group in (2, 4))
            # An empty span names the line before it, any other its first line.
            if int(match[3]) - (new > 0) != int(match[1]) - (old > 0) + shift:
                self._refuse(f"gives hunk {hunk.number} of {shown(_stripped(name))} line numbers that disagree")
            shift += new - old
            self._at += 1
            while old > 0 or new > 0:
                old, new = self._hunk_line(hunk, name, old, new)
            if self._line().startswith("\\"):
                self._at += 1
            found.append(hunk)
        if not found:
            self._refuse("must begin a hunk with '@@ -…'")
        return tuple(found)

    def _hunk_line(self, hunk: Hunk, name: str, old: int, new: int) -> tuple[int, int]:
        mark = self._line()[:1] or " "  # editors strip the blank of an empty line of context
        if self._at >= len(self._lines) or mark not in " -+\\":
            self._refuse(f"ends hunk {hunk.number} of {shown(_stripped(name))} before its announced length")
        self._at += 1
        old -= mark in " -"
        new -= mark in " +"
        if old < 0 or new < 0:
            self._refuse(f"makes hunk {hunk.number} of {shown(_stripped(name))} longer than announced", self._at - 1)
        return old, new

    def _binary(self) -> None:
        self._at += 1
        blocks = 0
        while _BINARY.match(self._line()):
            self._at += 1
            while _BASE85.match(self._line()):
                self._at += 1
            if self._line():
                self._refuse("is not part of a binary block")
            self._at += 1
            blocks += 1
        if blocks not in (1, 2):
            self._refuse("must be a binary block of one or two parts")


def _are_named(header: str, moved: dict[str, str]) -> bool:
    """Whether a header names the two ends of a rename or copy, each behind one part that is left out."""
    ends = [rf'"?[^/"]+/{re.escape(moved.get(end, "").strip(chr(34)))}"?' for end in ("from", "to")]
    return re.fullmatch(" ".join(ends), header.rstrip()) is not None


def _other(name: str) -> str:
    """The same file on the other side: `a/x` for `b/x`."""
    quote = '"' if name.startswith('"') else ""
    side, rest = name[len(quote) : len(quote) + 2], name[len(quote) + 2 :]
    return quote + {"a/": "b/", "b/": "a/"}.get(side, side) + rest


def _stripped(name: str) -> str:
    """Without the first part, as it is applied."""
    if name.startswith('"'):
        return '"' + name.partition("/")[2]
    return name.partition("/")[2]
