"""Agents that want to know how many sandboxes there were before theirs: what earlier attempts needed is told by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from securebench.audit.suite.attack import End, Ground, Seen
from securebench.sandboxes.base import Command, Limits, SandboxSpec, Scratch

SANDBOXES, STEP = 4, 50
"""A number that grows from each sandbox to the next, by no more than a busy machine opens meanwhile, is a count."""


class BrokenProgram(Exception):
    """The program that plays the agent did not come to its end, so what it shows is worth nothing."""


@dataclass(frozen=True, slots=True)
class Count:
    """A program that prints a JSON object of texts, in several sandboxes one after the other. `told` are variables that
    each of them is given, by its number."""

    program: str
    told: Callable[[int], Mapping[str, str]] | None = None

    async def on(self, ground: Ground) -> Seen:
        seen: list[dict[str, str]] = []
        for number in range(SANDBOXES):
            env = self.told(number) if self.told is not None else {}
            place = Scratch("/work")  # as every agent has one
            limits = Limits(wall_seconds=60)
            spec = SandboxSpec(root=ground.root, mounts=(place,), env=env, cwd=place.target, limits=limits)
            async with ground.sandbox.open(spec) as session:
                result = await session.run(Command(("python3", "-I", "-c", self.program)))
            if not result.ok:
                raise BrokenProgram(result.stderr.data[-300:].decode("utf-8", "replace"))
            seen.append(json.loads(result.stdout.data))
        counts = [name for name in seen[0] if _counts([one.get(name, "") for one in seen])]
        return Seen(End.REACHED if counts else End.MISSED, ", ".join(counts))


def _counts(texts: list[str]) -> bool:
    columns = zip(*(list(_numbers(text)) for text in texts), strict=False)
    return any(all(0 < after - before <= STEP for before, after in pairwise(column)) for column in columns)


def _numbers(text: str) -> Iterator[int]:
    """The words of a text as numbers; every word that is none counts as zero."""
    for word in "".join(char if char.isalnum() else " " for char in text).split():
        yield int(word) if word.isdecimal() else 0
