"""Hidden texts in sight: whether one stands in what an agent can see, in which form, and how sure that is. Pure.

A01 is `find_leaks` over files, A08 `stated_solutions` over the public text; A04 is in `repaired`, A05 in `derived`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from securebench.audit.pack.information import SURE, TELLING, bits, plain_lines
from securebench.records._matching import Needles, fold
from securebench.records._spellings import DIALECTS

SHORTEST = 5
"""Characters below which a text is not looked for: it is everywhere."""
SHORTEST_ENCODED = 8
LEAST_ENCODED = 8.0
"""Bits from which an encoded text counts: nobody writes one by chance, but it may be what a task is about."""
PLAIN, REVERSED = "plain", "reversed"
LEAST_OF_A_LINE = 10.0
MOST_ENCODED = 5000
"""Lines that are looked for in every form; further ones only as they are."""
_LOOKED_AT_WHOLE = 4096


@dataclass(frozen=True, slots=True)
class Secret:
    """A hidden text. `field` is where the row has it. Of a long one, lines are looked for."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Leak:
    """What of a hidden field was seen at `place`. `weight` is the information seen, in bits, `share` the part of the
    field's that this is."""

    field: str
    place: str
    form: str
    weight: float
    share: float

    @property
    def sure(self) -> bool:
        return self.weight >= SURE

    def __str__(self) -> str:
        how = "" if self.form == PLAIN else f" ({self.form})"
        certainty = "surely no chance" if self.sure else "perhaps by chance"
        return f"{self.share:.0%} of {self.field} stands in {self.place}{how}; {self.weight:.0f} bits, {certainty}"


def _reversed(text: str) -> Iterator[str]:
    yield text[::-1]


_Forms = Sequence[tuple[str, Callable[[str], Iterator[str]]]]
_TOOLS: _Forms = tuple((dialect.name, dialect.spell) for dialect in DIALECTS if dialect.name != PLAIN)
_ENCODED = frozenset({"base64", "hex"})
_WRAPPED = re.compile(r"(?m)^[A-Za-z0-9+/=]{60,}$")


class LeakSearch:
    """Looks for secrets in any number of texts. `known` is public by right: what stands in it is no secret."""

    def __init__(self, secrets: Iterable[Secret], known: str = "") -> None:
        self._total: dict[str, float] = {}
        self._parts: dict[str, tuple[str, float]] = {}  # part -> the field it is of, its weight
        familiar = frozenset(plain_lines(known))
        for secret in secrets:
            for part in _parts(secret.text):
                weight = bits(part)
                if weight and part not in familiar and part not in self._parts:
                    self._parts[part] = secret.field, weight
                    self._total[secret.field] = self._total.get(secret.field, 0.0) + weight

    def __bool__(self) -> bool:
        return bool(self._parts)

    def in_text(self, place: str, text: str, least: float = TELLING) -> list[Leak]:
        """Every field of which at least so many bits are seen there, in the form that shows most of it."""
        if not self._parts:
            return []
        lines = plain_lines(text)
        shown = fold("\n".join([*lines, " ".join(lines)]))  # and once more as one: sentences are wrapped anywhere
        if _WRAPPED.search(text):  # an encoder's line breaks
            shown += "\n" + shown.replace("\n", "")
        seen: dict[tuple[str, str], float] = {}
        for form, part in {one for needle in self._search.occurring(shown) for one in self._spelled[needle]}:
            field, weight = self._parts[part]
            seen[field, form] = seen.get((field, form), 0.0) + weight
        best: dict[str, Leak] = {}
        for (field, form), weight in sorted(seen.items(), key=lambda item: -item[1]):
            wanted = min(least, LEAST_ENCODED) if form in _ENCODED else least
            if weight >= wanted and field not in best:
                best[field] = Leak(field, place, form, weight, weight / self._total[field])
        return list(best.values())

    @cached_property
    def _spelled(self) -> dict[str, list[tuple[str, str]]]:
        """What to look for: folded text -> the forms and parts it shows."""
        spelled: dict[str, list[tuple[str, str]]] = {}
        for number, part in enumerate(self._parts):
            plain = fold(part)
            spelled.setdefault(plain, []).append((PLAIN, part))
            for form, spell in _forms(part) if number < MOST_ENCODED else ():
                for spelling in map(fold, spell(part)):
                    if spelling != plain and len(spelling) >= (SHORTEST_ENCODED if form in _ENCODED else SHORTEST):
                        spelled.setdefault(spelling, []).append((form, part))
        return spelled

    @cached_property
    def _search(self) -> Needles:
        return Needles(self._spelled)


def find_leaks(
    secrets: Iterable[Secret], texts: Mapping[str, str], known: str = "", least: float = TELLING
) -> list[Leak]:
    """Where in `texts` (by place) the secrets stand, heaviest first."""
    search = LeakSearch(secrets, known)
    found = [leak for place, text in texts.items() for leak in search.in_text(place, text, least)]
    return sorted(found, key=lambda leak: -leak.weight)


def stated_solutions(public: Mapping[str, str], secrets: Iterable[Secret]) -> list[Leak]:
    """A08: what the public text of a task says of its solution."""
    return find_leaks(secrets, public)


def _forms(part: str) -> _Forms:
    """A short word read backwards is often another word."""
    return (*_TOOLS, (REVERSED, _reversed)) if bits(part) >= TELLING else _TOOLS


def _parts(text: str) -> Iterator[str]:
    lines = plain_lines(text)
    if len(lines) == 1 and len(lines[0]) <= _LOOKED_AT_WHOLE:
        if len(lines[0]) >= SHORTEST:
            yield lines[0]
        return
    for line in lines:
        if SHORTEST <= len(line) <= _LOOKED_AT_WHOLE and bits(line) >= LEAST_OF_A_LINE:
            yield line
