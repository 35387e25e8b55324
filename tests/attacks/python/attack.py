"""What one hostile program is, and what counts as its success.

A program never testifies about itself. `Seen` names what somebody outside has to see before an attack counts: the
printed answer to an expression that only the forbidden route can compute, a token that lies outside the root, a changed
outside file, bytes at a listener, a second process, a dead watcher, or an amount beyond a limit.

`@NAME@` in a source stands for a value of the `World` it runs in, written as a Python literal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

COLUMNS = ("dynamic", "process", "files", "network", "imports", "tamper", "resources")


class Seen(StrEnum):
    """The outside evidence of success."""

    ANSWER = "answer"  # the value of an expression, a pickle, … that came in as data
    SECRET = "secret"
    CHANGED = "changed"  # something in the outside directory is not as it was
    BYTES = "bytes"  # a listener outside got the token
    CHILD = "child"  # another program ran: its output
    ORPHAN = "orphan"  # a second process with our mark was seen
    DEAD = "dead"  # the watcher, or the process that started the program, is gone
    LIMIT = "limit"  # more of a resource was held than allowed


@dataclass(frozen=True, slots=True)
class Attack:
    """One hostile program. `item` is the guarantee it is aimed at; `resource` says what `LIMIT` measures."""

    id: str
    column: str
    item: str
    seen: Seen
    source: str
    resource: str = ""
    limits: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    alone: bool = False  # ends everything around it where nothing stops it
    docker: bool = False  # part of the sample for Docker, where a run costs half a second

    def filled(self, values: Mapping[str, object]) -> str:
        """The source with the world's values in it. Raises KeyError for a name no world has."""
        return re.sub(r"@([A-Z0-9_]+)@", lambda match: repr(values[match[1]]), self.source)


def table(column: str, rows: list[tuple[str, str, Seen, str]]) -> list[Attack]:
    """Attacks of one column from `(id, item, seen, source)`."""
    return [Attack(f"{column}-{name}", column, item, seen, source.strip() + "\n") for name, item, seen, source in rows]
