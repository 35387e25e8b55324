"""Keep the pack's private values out of everything the trusted side writes.

A private text of at least `MIN_LENGTH` characters is scrubbed wherever it occurs, in any spelling a tool may give it
(`_spellings`), and a long one also in parts (`_secret_parts`). Shorter ones (`A`, `42`) would blank innocent text, so
they are scrubbed only where a whole text equals one. A candidate's own bytes are never passed through here: blanking
what it got right would tell which values are right, and a record must hold what was judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from securebench._json import Json
from securebench.records._matching import Needles, fold
from securebench.records._secret_parts import MIN_LENGTH, SecretParts, secret_parts
from securebench.records._spellings import DIALECTS, Dialect
from securebench.resources import REDACTED

__all__ = ["MIN_LENGTH", "Redactor", "StreamRedactor"]

_WHOLE = 1024  # a longer text is not taken for a short value with space around it
_LOOKED_AT = 1 << 16
_COMMON, _MOST_COMMON = 64, 1024


class Redactor:
    """Scrubs the private values of one task. What the public lane holds too is given as `public`."""

    def __init__(self, secrets: Iterable[Json], public: Iterable[Json] = ()) -> None:
        self._parts: SecretParts = secret_parts(secrets, public)
        self._shortest = min(map(len, self._parts.texts), default=0)
        self._spelled: dict[str, frozenset[str]] = {}
        self._needles: dict[tuple[str, ...], Needles] = {}
        self._common: dict[str, str] = {}  # short texts that every record has, with what became of them

    def text(self, text: str) -> str:
        if len(text) > _COMMON:
            return self._scrubbed(text)
        known = self._common.get(text)
        if known is None:
            known = self._scrubbed(text)
            if len(self._common) < _MOST_COMMON:
                self._common[text] = known
        return known

    def _scrubbed(self, text: str) -> str:
        if self._is_short(text):
            return REDACTED
        if not self._parts.texts or len(text) < MIN_LENGTH:
            return text
        folded = fold(text)
        spans, _ = self._needles_for(self._dialects_of(folded)).spans(folded)
        return _Scrubbing().scrub(text, spans, len(text)) if spans else text

    def value(self, value: Any) -> Any:
        """A plain JSON copy of a value with every text scrubbed, keys included. Total: it never fails to serialise."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            return REDACTED if value in self._parts.numbers or str(value) in self._parts.texts else value
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item) for item in value]
        return self.text(str(value))

    def stream(self) -> StreamRedactor:
        """For one text that comes in pieces."""
        return StreamRedactor(self._needles_for(DIALECTS), self._is_short)

    def _is_short(self, text: str) -> bool:
        return bool(self._parts.short) and len(text) <= _WHOLE and text.strip() in self._parts.short

    def _dialects_of(self, folded: str) -> Sequence[Dialect]:
        """Spelling every secret in every way costs more than a look at a text that is not too long."""
        if len(folded) > _LOOKED_AT:
            return DIALECTS
        return [dialect for dialect in DIALECTS if dialect.hint(folded, self._shortest)]

    def _needles_for(self, dialects: Sequence[Dialect]) -> Needles:
        names = tuple(dialect.name for dialect in dialects)
        if names not in self._needles:
            self._needles[names] = Needles(frozenset().union(*map(self._spellings, dialects)))
        return self._needles[names]

    def _spellings(self, dialect: Dialect) -> frozenset[str]:
        if dialect.name not in self._spelled:
            spell = dialect.spell
            self._spelled[dialect.name] = frozenset(
                [fold(spelling) for text in self._parts.texts for spelling in spell(text)]
            )
        return self._spelled[dialect.name]


class StreamRedactor:
    """Scrubs one text that comes in pieces, with the result that scrubbing all of it at once would have.

    Holds back what may be the beginning of a secret, at most as much as its longest spelling."""

    def __init__(self, needles: Needles, is_short: Callable[[str], bool]) -> None:
        self._needles = needles
        self._is_short = is_short
        self._may_be_short = True
        self._held = ""
        self._scrubbing = _Scrubbing()

    def feed(self, text: str) -> str:
        """What may be shown now."""
        self._held += text
        if self._may_be_short and len(self._held) <= _WHOLE and len(self._held.strip()) < MIN_LENGTH:
            return ""
        self._may_be_short = False
        return self._release(final=False)

    def finish(self) -> str:
        """The rest. The stream then stands at the beginning of another text."""
        if self._may_be_short and self._is_short(self._held):
            self._held = ""
            return REDACTED
        rest = self._release(final=True)
        self._may_be_short, self._scrubbing = True, _Scrubbing()
        return rest

    def _release(self, final: bool) -> str:
        window = self._held
        spans, decided = self._needles.spans(fold(window), final)
        self._held = window[decided:]
        return self._scrubbing.scrub(window, spans, decided)


class _Scrubbing:
    """Writes a text with spans blanked. Spans that overlap or touch become one, also across calls."""

    def __init__(self) -> None:
        self._covered = -1  # how far into the next piece of text the last span reaches; negative: it does not

    def scrub(self, text: str, spans: Iterable[tuple[int, int]], end: int) -> str:
        """The text up to `end`, before which all spans begin."""
        written: list[str] = []
        covered = self._covered
        for start, stop in spans:
            if start > covered:
                written += (text[max(covered, 0) : start], REDACTED)
            covered = max(covered, stop)
        written.append(text[max(covered, 0) : end])
        self._covered = covered - end if covered >= end else -1
        return "".join(written)
