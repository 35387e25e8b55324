"""What an attack is: data, and three plays.

The attack itself is played against the real thing and must not reach its goal. Its honest twin, played the same way,
must: a wall that stops everybody proves nothing. Its control is the same attack against something deliberately weak,
and must reach its goal: an attack that cannot even beat that is broken, and its failure elsewhere says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from securebench.errors import SecureBenchError
from securebench.sandboxes.base import Root, Sandbox


class Phase(StrEnum):
    """When the attack acts."""

    PRODUCE = "produce"
    EXTRACT = "extract"
    VERIFY = "verify"
    REPORT = "report"


class End(StrEnum):
    """How a play ended."""

    REACHED = "reached"  # the goal: a pass, a secret, a process that lives on
    MISSED = "missed"  # an ordinary failure of whoever played
    FAULT = "fault"  # neither: the framework's own failure, which nobody may be able to provoke


@dataclass(frozen=True, slots=True)
class Seen:
    """What was observed of a play, from outside of it. `reason` is the framework's own word for it, if it has one."""

    end: End
    detail: str = ""
    reason: str = ""


class NotHere(SecureBenchError):
    """The play needs something that this backend or host does not have. Says what."""


class Stopped(Exception):
    """The operator's Ctrl-C, which the engine that a play was running took for its own."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a play takes place: one backend with a root that holds python3, and an empty directory of its own."""

    backend: str
    sandbox: Sandbox
    root: Root
    directory: Path


class Play(Protocol):
    """Something that can be tried. Equal plays on one backend are tried once, so they are frozen and comparable."""

    async def on(self, ground: Ground) -> Seen:
        """Try it. Raises NotHere; anything else it raises is a fault."""
        ...


@dataclass(frozen=True, slots=True)
class Class:
    """A class of attacks, with the principle that defeats it whole."""

    letter: str
    title: str
    principle: str


@dataclass(frozen=True, slots=True)
class Threat:
    """One row of the taxonomy: what we claim about it. `not_played` says why a row has no attack, where it has none;
    `not_claimed` says where the claim ends."""

    id: str
    title: str
    families: tuple[str, ...]
    phases: tuple[Phase, ...]
    claim: str
    invented: bool = False
    not_claimed: str = ""
    not_played: str = ""


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to carry a threat out. `name` is unique within its threat and reads well after its id.

    `expect` are the reasons the framework may give for the failure; without any, every ordinary failure will do.
    `isolated`: played on every backend; else it never meets one, and is played once."""

    threat: str
    name: str
    how: str
    attack: Play
    honest: Play
    control: Play
    expect: frozenset[str] = frozenset()
    isolated: bool = True

    @property
    def id(self) -> str:
        return f"{self.threat}/{self.name}"
