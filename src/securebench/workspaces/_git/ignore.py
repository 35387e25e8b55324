"""What the `.gitignore` files of a pristine tree ignore, decided as git does. Pure; linear in path and pattern.

The last matching pattern of the deepest file decides; what lies beneath an ignored directory is ignored, whatever
patterns say about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_PATTERNS = 20_000
_BOM = b"\xef\xbb\xbf"
_CLASSES = {
    b"alnum": "a-zA-Z0-9", b"alpha": "a-zA-Z", b"blank": r" \t", b"cntrl": r"\x00-\x1f\x7f", b"digit": "0-9",
    b"graph": r"\x21-\x7e", b"lower": "a-z", b"print": r"\x20-\x7e", b"punct": r"!-/:-@\[-`{-~",
    b"space": r" \t\n\r\f\v", b"upper": "A-Z", b"xdigit": "0-9a-fA-F",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Pattern:
    negated: bool
    only_directories: bool
    anchored: bool
    segments: tuple[re.Pattern[bytes] | None, ...]  # None stands for `**`

    def matches(self, parts: Sequence[bytes], is_dir: bool) -> bool:
        if self.only_directories and not is_dir:
            return False
        if not self.anchored:
            segment = self.segments[0]
            return segment is None or segment.fullmatch(parts[-1]) is not None
        return _match(self.segments, parts)


class IgnoreRules:
    """The rules of one tree. `files` maps each directory (as parts) to the content of its `.gitignore`."""

    def __init__(self, files: Mapping[tuple[bytes, ...], bytes]) -> None:
        self._rules: dict[tuple[bytes, ...], list[_Pattern]] = {}
        left = MAX_PATTERNS
        for directory, content in files.items():
            patterns = [
                pattern
                for line in content.removeprefix(_BOM).split(b"\n")[:left]
                if (pattern := _parse(line)) is not None
            ]
            left -= len(patterns)
            self._rules[directory] = patterns
        self._known: dict[tuple[bytes, ...], bool] = {(): False}

    def ignored(self, path: bytes, is_dir: bool) -> bool:
        """Whether git would ignore `path` if it were not tracked."""
        parts = tuple(path.split(b"/"))
        return self._directory_ignored(parts[:-1]) or self._decide(parts, is_dir)

    def _directory_ignored(self, parts: tuple[bytes, ...]) -> bool:
        known = self._known.get(parts)
        if known is None:
            known = self._known[parts] = self._directory_ignored(parts[:-1]) or self._decide(parts, True)
        return known

    def _decide(self, parts: tuple[bytes, ...], is_dir: bool) -> bool:
        for depth in range(len(parts) - 1, -1, -1):
            for pattern in reversed(self._rules.get(parts[:depth], ())):
                if pattern.matches(parts[depth:], is_dir):
                    return not pattern.negated
        return False


def _parse(line: bytes) -> _Pattern | None:
    line = _without_trailing_spaces(line.removesuffix(b"\r"))
    if not line or line.startswith(b"#"):
        return None
    negated = line.startswith(b"!")
    line = line.removeprefix(b"!")
    only_directories = line.endswith(b"/")
    line = line.removesuffix(b"/")
    if not line:
        return None
    anchored = b"/" in line
    try:
        segments = tuple(None if part == b"**" else _compile(part) for part in line.removeprefix(b"/").split(b"/"))
    except ValueError:
        return None  # such as an unclosed bracket; git then matches nothing either
    return _Pattern(negated, only_directories, anchored, segments)


def _without_trailing_spaces(line: bytes) -> bytes:
    while line.endswith(b" ") and not line.endswith(b"\\ "):
        line = line[:-1]
    return line


def _match(segments: Sequence[re.Pattern[bytes] | None], parts: Sequence[bytes]) -> bool:
    """Segments against path components, `**` as any number of them: one row of a table per segment."""
    reached = [True] + [False] * len(parts)  # which number of components the segments so far can take
    for number, segment in enumerate(segments):
        following = [False] * (len(parts) + 1)
        if segment is None:
            last = number == len(segments) - 1
            first = next((index for index, is_set in enumerate(reached) if is_set), len(reached))
            for index in range(first + last, len(parts) + 1):  # a final `**` needs something inside
                following[index] = True
        else:
            for index, part in enumerate(parts):
                following[index + 1] = reached[index] and segment.fullmatch(part) is not None
        reached = following
    return reached[-1]


def _compile(glob: bytes) -> re.Pattern[bytes]:
    """One component. Between stars the earliest match is kept for good, so that no name makes it try for long."""
    first, *others = _split_at_stars(glob)
    pattern = first + "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    if others:
        pattern += f".*{others[-1]}"  # fixed width: anchored at the end, it fits in one place only
    return re.compile(pattern.encode("latin-1"), re.DOTALL)


def _split_at_stars(glob: bytes) -> list[str]:
    pieces, piece, at = [], "", 0
    while at < len(glob):
        char = glob[at : at + 1]
        if char == b"*":
            pieces.append(piece)
            piece = ""
        elif char == b"?":
            piece += "."
        elif char == b"[":
            text, at = _bracket(glob, at)
            piece += text
            continue
        else:
            if char == b"\\":
                at += 1
                char = glob[at : at + 1]
                if not char:
                    raise ValueError("a pattern that ends with a backslash")
            piece += re.escape(char.decode("latin-1"))
        at += 1
    return [*pieces, piece]


def _bracket(glob: bytes, at: int) -> tuple[str, int]:
    """The class that starts at `at` as regular expression text, and where it ends. Raises ValueError."""
    at += 1
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    inside, start = "", at
    while glob[at : at + 1] != b"]" or at == start:
        if at >= len(glob):
            raise ValueError("a bracket that does not close")
        if glob[at : at + 2] == b"[:":
            end = glob.find(b":]", at)
            if end < 0 or glob[at + 2 : end] not in _CLASSES:
                raise ValueError("an unknown character class")
            inside += _CLASSES[glob[at + 2 : end]]
            at = end + 2
            continue
        low, at = _literal(glob, at)
        if glob[at : at + 1] == b"-" and glob[at + 1 : at + 2] not in (b"]", b""):
            high, at = _literal(glob, at + 1)
            if low <= high:  # else the range is empty, as in git
                inside += f"\\x{low:02x}-\\x{high:02x}"
        else:
            inside += f"\\x{low:02x}"
    if not inside:
        return ("." if negated else "(?!)"), at + 1
    return f"[{'^' if negated else ''}{inside}]", at + 1


def _literal(glob: bytes, at: int) -> tuple[int, int]:
    if glob[at : at + 1] == b"\\":
        at += 1
    if at >= len(glob):
        raise ValueError("a bracket that does not close")
    return glob[at], at + 1
