"""A hostile agent in the real producer: its program gets the agent's view of a real pack whose private fields all hold
a marker that nobody can guess, and prints what it found.

What it may be weakened by is a function that puts something into the workspace before the agent starts, or into its
environment: what a materializer that subtracts instead of adding would have left there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from securebench.audit.plays.agent_pack import Markers, forms, marked_task, read_rows, write_marked_pack, write_rows
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.store import CandidateStore
from securebench.errors import PackError
from securebench.families.registry import family as family_of
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.factory import build_harness_producer
from securebench.resources import Component
from securebench.sandboxes.base import Capabilities, ImageRoot, Root, Sandbox, SandboxSpec, Session
from securebench.tasks import SecureBenchTask
from securebench.tester_config import parse_tester_config

LOOKED = "that was all"
SECONDS = 60.0
REFUSED = "refused"
Spoil = Callable[[Path, Markers], None]
"""Changes a pack on disk before it is loaded."""
Weakness = Callable[[Path, Path, Markers], Mapping[str, str]]
"""Adds to the workspace of an agent, given the pack it is of; returns variables for its environment."""


class BrokenAgent(Exception):
    """The program that plays the agent did not come to its end, so what it shows is worth nothing."""


@dataclass(frozen=True, slots=True)
class Look:
    """An agent that prints what it sees, and wants to see the marker it seeks. `told` where the pack lies, or not: then
    the name of that place is private too, because nothing of the host's paths is for an agent to see."""

    program: str
    family: str = "terminal_task"
    seek: Literal["private", "public"] = "private"
    spoil: Spoil | None = None
    weak: Weakness | None = None
    told: bool = False

    async def on(self, ground: Ground) -> Seen:
        marks = Markers()
        pack = ground.directory / ("pack" if self.told else f"pack-{marks.private}")
        write_marked_pack(pack, marks, environment_of(ground.root))
        if self.spoil is not None:
            self.spoil(pack, marks)
        sandbox = ground.sandbox if self.weak is None else Weakened(ground.sandbox, self.weak, pack, marks)
        try:
            task = marked_task(pack, self.family)
            store = CandidateStore(ground.directory / "store")
            printed = await look(task, self.program, sandbox, store, pack, *([str(pack)] if self.told else []))
        except PackError as error:
            return Seen(End.MISSED, str(error).replace(marks.private, "…")[:500], REFUSED)
        wanted = marks.private if self.seek == "private" else marks.public
        return Seen(End.REACHED if any(form in printed for form in forms(wanted)) else End.MISSED, f"{self.seek} data")


@dataclass(frozen=True, slots=True)
class TellApart:
    """An agent that measures all it can, on two tasks that differ in one lane only, each twice: what is the same on
    one task and different on the other tells them apart. The agent prints its measurements as a JSON object."""

    program: str
    family: str = "terminal_task"
    lane: Literal["hidden", "public"] = "hidden"
    weak: Weakness | None = None

    async def on(self, ground: Ground) -> Seen:
        one = Markers()
        other = replace(one, private=f"{one.private}-{'x' * 200}")
        if self.lane == "public":
            other = replace(one, public=f"{one.public}-{'x' * 200}")
        measured: list[dict[str, str]] = []
        for number, marks in enumerate((one, other, one, other)):
            pack = ground.directory / f"pack-{number}"
            write_marked_pack(pack, marks, environment_of(ground.root))
            if marks is other and self.lane == "hidden":
                write_rows(pack, [_answered_otherwise(row) for row in read_rows(pack)])
            sandbox = ground.sandbox if self.weak is None else Weakened(ground.sandbox, self.weak, pack, marks)
            store = CandidateStore(ground.directory / f"store-{number}")
            printed = await look(marked_task(pack, self.family), self.program, sandbox, store, pack)
            measured.append(json.loads(printed.partition(LOOKED)[0]))
        telling = _telling(*measured)
        return Seen(End.REACHED if telling else End.MISSED, ", ".join(telling)[:500])


@dataclass(frozen=True, slots=True)
class SameHarness:
    """Two harnesses that want to be taken for one: their records must not name the same harness."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    first_env: tuple[tuple[str, str], ...] = ()
    second_env: tuple[tuple[str, str], ...] = ()
    digest: Callable[[Production], str] | None = None

    async def on(self, ground: Ground) -> Seen:
        names = []
        for number, (argv, env) in enumerate(((self.first, self.first_env), (self.second, self.second_env))):
            marks, pack = Markers(), ground.directory / f"pack-{number}"
            write_marked_pack(pack, marks, environment_of(ground.root))
            task, store = marked_task(pack, "multiple_choice"), CandidateStore(ground.directory / f"store-{number}")
            made = await produced(task, argv, ground.sandbox, store, pack, dict(env))
            if made.failure is not None:
                raise BrokenAgent(str(made.failure))
            names.append(self.digest(made) if self.digest else str(made.metadata["harness_digest"]))
        return Seen(End.REACHED if names[0] == names[1] else End.MISSED, "one name for both harnesses")


def environment_of(root: Root) -> dict[str, Any]:
    return {"image": root.reference} if isinstance(root, ImageRoot) else {}


async def look(
    task: SecureBenchTask, program: str, sandbox: Sandbox, store: CandidateStore, pack: Path, *arguments: str
) -> str:
    """What the agent printed. Raises BrokenAgent, PackError."""
    argv = ("python3", "-I", "-c", f"{program}\nprint({LOOKED!r})\n", *arguments)
    made = await produced(task, argv, sandbox, store, pack)
    if LOOKED not in made.stdout or made.failure is not None:
        raise BrokenAgent(f"{made.failure or made.fault}: {made.stderr[-300:]}")
    return made.stdout


async def produced(
    task: SecureBenchTask,
    argv: Sequence[str],
    sandbox: Sandbox,
    store: CandidateStore,
    pack: Path,
    env: Mapping[str, str] | None = None,
) -> Production:
    """What the real producer of a `command` harness makes of a task."""
    config = parse_tester_config(
        {
            "schema_version": "0.3",
            "run": {"id": "audit", "output_dir": "out"},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {
                "type": "command",
                "env": sorted(env or {}),
                "config": {"command": list(argv), "timeout_seconds": SECONDS},
            },
        },
        base_dir=pack,
        env=env,
    )
    return await build_harness_producer(config, sandbox).produce(request_for(task, store))


def request_for(task: SecureBenchTask, store: CandidateStore) -> ProducerRequest:
    """What the engine hands to a producer."""
    return ProducerRequest(
        task_id=task.id,
        attempt=1,
        kind=family_of(task.task_type).candidate,
        payload=task.agent_payload(),
        view=task.view_for(Component.AGENT),
        environment=task.environment,
        store=store,
    )


@dataclass(frozen=True, slots=True)
class Weakened:
    """A sandbox in which the agent's workspace and environment hold more than they should."""

    sandbox: Sandbox
    weakness: Weakness
    pack: Path
    marks: Markers

    @property
    def name(self) -> str:
        return self.sandbox.name

    async def offers(self, root: Root) -> bool:
        return await self.sandbox.offers(root)

    async def probe(self) -> Capabilities:
        return await self.sandbox.probe()

    async def clean(self) -> list[str]:
        return await self.sandbox.clean()

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        return self._open(spec)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        env: Mapping[str, str] = {}
        for scratch in spec.scratches:
            if scratch.seed is not None:
                env = self.weakness(scratch.seed, self.pack, self.marks)
        async with self.sandbox.open(replace(spec, env={**spec.env, **env})) as session:
            yield session


def _answered_otherwise(row: dict[str, Any]) -> dict[str, Any]:
    if row["family"] == "multiple_choice":
        row["eval"]["answer"] = 1
    return row


def _telling(a: dict[str, str], b: dict[str, str], again_a: dict[str, str], again_b: dict[str, str]) -> list[str]:
    names = sorted(a.keys() | b.keys())
    return [
        name for name in names if a.get(name) == again_a.get(name) != b.get(name) and b.get(name) == again_b.get(name)
    ]
