"""Ids for rows: what the source calls them, made safe and unique by one rule.

1. White space is one `_`; a control, invisible or otherwise unprintable character becomes `_`, and so does half a
   character.
2. A name of more than 200 characters is cut to 183, then `-` and 16 hexadecimal digits of the digest of all of it.
3. A name that was given before gets `~2`, `~3` and so on, in the order of the source.

Other characters stay: `HumanEval/0` is called so in sample files too."""

from __future__ import annotations

import hashlib
import unicodedata

LONGEST = 200
_KEPT = LONGEST - 17


def safe_id(text: str) -> str:
    """The name by rules 1 and 2; `_` for one that is empty."""
    joined = "_".join(text.split())
    plain = "".join("_" if unicodedata.category(char)[0] in "CZ" else char for char in joined) or "_"
    if len(plain) <= LONGEST:
        return plain
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{plain[:_KEPT]}-{digest}"


class Ids:
    """The ids given so far."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}  # and how often a row asked for it

    def free(self, text: str) -> str:
        """The id that a row of that name would get now."""
        wanted = safe_id(text)
        if wanted not in self._given:
            return wanted
        number = self._given[wanted] + 1
        while (found := safe_id(f"{wanted}~{number}")) in self._given:
            number += 1
        return found

    def give(self, text: str, given: str) -> None:
        """Take note that `given`, from `free(text)`, is a row's."""
        wanted = safe_id(text)
        self._given[wanted] = self._given.get(wanted, 0) + 1
        self._given.setdefault(given, 1)
