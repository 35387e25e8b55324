"""Patterns of a pack over paths of a tree. Pure.

`*` and `?` stay within one part, `**` as a part stands for any number of parts, `[…]` is a set of characters. A
pattern without a slash matches that name in any directory; one with a slash (also at its beginning) starts at the
root. What matches stands for itself and everything beneath it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from securebench._paths import canonical_key

MAX_PATTERN = 1024


@dataclass(frozen=True)
class PathPatterns:
    """Several patterns, matched together. Raises ValueError for one that cannot be meant.

    Exact patterns compare NFC text: they give something away, so no other spelling may profit. Canonical ones
    compare canonical keys (NFC and casefold): they take something away, so no other spelling may escape."""

    patterns: tuple[str, ...]
    canonical: bool = False

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            _check(pattern)
            re.compile(self._source(pattern))

    @classmethod
    def of(cls, patterns: Iterable[str], canonical: bool = False) -> PathPatterns:
        return cls(tuple(patterns), canonical)

    def match(self, path: str) -> str | None:
        """The first pattern that covers this path, or None."""
        if not self.patterns:
            return None
        text = "/".join(canonical_key(path)) if self.canonical else unicodedata.normalize("NFC", path)
        if self._all.fullmatch(text) is None:
            return None
        return next(pattern for pattern, regex in self._each if regex.fullmatch(text))

    @cached_property
    def _each(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        return tuple((pattern, re.compile(self._source(pattern), re.DOTALL)) for pattern in self.patterns)

    @cached_property
    def _all(self) -> re.Pattern[str]:
        return re.compile("|".join(self._source(pattern) for pattern in self.patterns), re.DOTALL)

    def _source(self, pattern: str) -> str:
        text = unicodedata.normalize("NFC", pattern)
        if self.canonical:
            text = unicodedata.normalize("NFC", text.casefold())
        parts = [part for part in text.split("/") if part]
        if "/" not in text.removesuffix("/"):
            parts = ["**", *parts]
        return f"(?:{_regex(parts)})"


def _check(pattern: str) -> None:
    if not pattern.strip("/*") and pattern not in {"*", "**", "/**", "**/*", "/*"}:
        raise ValueError(f"{pattern!a} is not a pattern of paths")
    if len(pattern) > MAX_PATTERN or "\\" in pattern or not pattern.isprintable():
        raise ValueError(f"{pattern[:80]!a} is too long, or has a backslash or an unprintable character")
    if any(part in {".", ".."} for part in pattern.split("/")):
        raise ValueError(f"{pattern!a} has a part '.' or '..'")


def _regex(parts: list[str]) -> str:
    """The first place where what stands between two wildcards fits is as good as any later one, so the search never
    goes back before it (an atomic group): no pattern and no path make matching slow."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(part)
    first, *others = ["".join(_part(part) + "/" for part in run) for run in runs]
    if not others:
        return first.removesuffix("/") + "(?:/.*)?"
    source = first + "".join(f"(?>(?:[^/]+/)*?{run})" for run in others[:-1] if run)
    last = others[-1].removesuffix("/")
    return source + (f"(?:[^/]+/)*?{last}(?:/.*)?" if last else ".+")


def _part(part: str) -> str:
    first, *others = _pieces(part)
    if not others:
        return first
    middle = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}[^/]*{others[-1]}"


def _pieces(part: str) -> list[str]:
    """What stands between the stars of one part, as regular expressions."""
    pieces, index = [""], 0
    while index < len(part):
        char = part[index]
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[" and (end := part.find("]", index + 2)) > 0:
            pieces[-1] += _characters(part[index + 1 : end])
            index = end
        else:
            pieces[-1] += re.escape(char)
        index += 1
    return pieces


def _characters(inner: str) -> str:
    body = re.escape(inner.removeprefix("!")).replace(r"\-", "-")
    source = f"(?!/)[{'^' if inner.startswith('!') else ''}{body}]"
    try:
        re.compile(source)
    except re.error:
        raise ValueError(f"[{inner}] is a set of characters that cannot be meant") from None
    return source
