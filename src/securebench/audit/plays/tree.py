"""What an agent's program leaves in its sandbox, before the strict reader: the sandbox is stopped, the reader takes the
tree over, and the goal is looked for in what it took and in what lies outside."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import anyio
from anyio import to_thread

from securebench.audit.plays.terminal import BrokenAgent, Solve, TerminalTask, refused
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.captured import Budget, Captured
from securebench.candidates.extraction import text_from_file
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.errors import CandidateError, SandboxError
from securebench.sandboxes.base import Command, Limits, SandboxSpec, Scratch, Session

OUTSIDE = "@OUTSIDE@"
"""In an agent's program: a directory of the operator's, which it knows and may not reach."""
PRIVATE = "private"
CANARY = b"canary-of-the-operator-8d1f0c"
APP = "/app"
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Taken:
    """One captured tree, and all that a goal may look at. `again` is the tree laid out once more."""

    captured: Captured
    store: CandidateStore
    outside: Path
    again: Path


Goal = Callable[[Taken], str | None]
"""What was reached, in words, or None. A named function, so that equal plays are equal."""


@dataclass(frozen=True, slots=True)
class Leave:
    """A Python program plays the agent, and leaves a tree behind."""

    agent: str
    goal: Goal
    budget: Budget | None = None

    async def on(self, ground: Ground) -> Seen:
        outside, store = lay_outside(ground), CandidateStore(ground.directory / "store")
        async with ground.sandbox.open(spec(ground)) as session:
            await work(session, self.agent.replace(OUTSIDE, str(outside)))
            await session.stop()
            try:
                read = partial(read_tree, session.scratch(APP), store, self.budget or Budget())
                captured = await to_thread.run_sync(read)
            except CandidateError as error:
                return refused(error)
        (again := ground.directory / "again").mkdir()
        await to_thread.run_sync(store.materialize, captured.tree, again)
        reached = self.goal(Taken(captured, store, outside, again))
        return Seen(End.MISSED if reached is None else End.REACHED, reached or "taken over as plain bytes")


@dataclass(frozen=True, slots=True)
class Declare:
    """The candidate is the text of the file that the agent was to write; the goal is a text that has `wanted` in it."""

    agent: str
    wanted: str

    async def on(self, ground: Ground) -> Seen:
        outside = lay_outside(ground)
        async with ground.sandbox.open(spec(ground)) as session:
            await work(session, self.agent.replace(OUTSIDE, str(outside)))
            await session.stop()
            try:
                with anyio.fail_after(_SECONDS):
                    read = partial(text_from_file, session.scratch(APP), PurePosixPath("answer.txt"))
                    text = await to_thread.run_sync(read, abandon_on_cancel=True)
            except CandidateError as error:
                return refused(error)
        return Seen(End.REACHED if self.wanted in text else End.MISSED, f"a text of {len(text)} characters")


@dataclass(frozen=True, slots=True)
class Divert:
    """A whole attempt with everything that we write during it; the goal is that some of it lands outside."""

    task: TerminalTask
    agent: str

    async def on(self, ground: Ground) -> Seen:
        outside = lay_outside(ground)
        seen = await Solve(self.task, self.agent.replace(OUTSIDE, str(outside))).on(ground)
        if seen.end is not End.REACHED:
            return Seen(End.FAULT, f"the attempt itself went wrong: {seen.detail}")
        reached = changes_outside(outside)
        return Seen(End.MISSED if reached is None else End.REACHED, reached or "nothing outside was written")


@dataclass(frozen=True, slots=True)
class ReadAlive:
    """The tree is asked for while the agent's program lives."""

    agent: str

    async def on(self, ground: Ground) -> Seen:
        ready = anyio.Event()
        seen = Seen(End.REACHED, "the tree of a live agent was given out")
        async with ground.sandbox.open(spec(ground)) as session, anyio.create_task_group() as tasks:

            async def live() -> None:
                with suppress(SandboxError):  # it is stopped while it lives
                    command = Command(("python3", "-c", self.agent), on_output=lambda *_: ready.set())
                    await session.run(command)

            tasks.start_soon(live)
            with anyio.fail_after(_SECONDS):
                await ready.wait()
            try:
                session.scratch(APP)
            except SandboxError as error:
                seen = Seen(End.MISSED, str(error))
            await session.stop()
        return seen


def spec(ground: Ground) -> SandboxSpec:
    return SandboxSpec(
        root=ground.root,
        mounts=(Scratch(APP),),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": APP},
        cwd=APP,
        limits=Limits(wall_seconds=60),
    )


async def work(session: Session, agent: str) -> None:
    """Raises BrokenAgent."""
    result = await session.run(Command(("python3", "-c", agent)))
    if not result.ok:
        raise BrokenAgent(f"{result.outcome}: {result.stderr.data[-500:].decode('utf-8', 'replace')}")


def lay_outside(ground: Ground) -> Path:
    (outside := ground.directory / "outside").mkdir()
    (outside / PRIVATE).write_bytes(CANARY)
    return outside


def leaks(taken: Taken) -> str | None:
    """Bytes from outside are among the stored ones."""
    files = [path for path in taken.store.directory.rglob("*") if path.is_file()]
    return "the operator's file was stored" if any(CANARY in path.read_bytes() for path in files) else None


def writes_outside(taken: Taken) -> str | None:
    return changes_outside(taken.outside)


def changes_outside(outside: Path) -> str | None:
    names = sorted(os.listdir(outside))  # noqa: PTH208
    if names != [PRIVATE]:
        return f"outside are now {names!a}"
    return None if (outside / PRIVATE).read_bytes() == CANARY else "the operator's file was changed"


def is_taken_at_all(taken: Taken) -> str | None:
    """A budget was no obstacle."""
    return f"{len(taken.captured.tree.entries)} entries, {taken.captured.tree.total_bytes} bytes"


def swells(taken: Taken) -> str | None:
    size = taken.captured.tree.total_bytes
    return f"it became {size} bytes" if size > 2**20 else None


def rides_along(taken: Taken) -> str | None:
    """Something other than plain files, directories and links with plain modes came through, or two names are one."""
    for path in taken.again.rglob("*"):
        status = path.lstat()
        mode = status.st_mode
        plain = stat.S_ISREG(mode) and status.st_nlink == 1 and stat.S_IMODE(mode) in (0o644, 0o755)
        if not (plain or stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and stat.S_IMODE(mode) == 0o755)):
            return f"{path.name!a} has the mode {mode:o} and {status.st_nlink} names"
        if not stat.S_ISLNK(mode) and os.listxattr(path):
            return f"{path.name!a} has extended attributes"
    return None


def forges_lines(taken: Taken) -> str | None:
    """A name breaks a line, moves a cursor or cannot be written, in a record or in a tree."""
    names = [entry.path for entry in taken.captured.tree.entries] + [item.path for item in taken.captured.left_out]
    json.dumps(taken.captured.as_record()).encode()
    return next((f"{name!a} is kept" for name in names if not name.isprintable() or len(name.splitlines()) != 1), None)


def floods_the_record(taken: Taken) -> str | None:
    size = len(json.dumps(taken.captured.as_record()))
    return f"the record of this tree has {size} bytes" if size > 2**20 else None


def says_otherwise(taken: Taken) -> str | None:
    """What is stored is not what lay there."""
    entry = taken.captured.tree.get("answer.txt")
    text = b"" if entry is None else taken.store.read(entry.digest, 1000)
    return None if text == b"0\n" else f"stored is {text!a}"


def is_whole(taken: Taken) -> str | None:
    """For honest trees: everything is there as it was left."""
    kept = {entry.path: entry for entry in taken.captured.tree.entries}
    program, link, answer = kept.get("bin/run"), kept.get("sub/latest"), kept.get("answer.txt")
    if taken.captured.left_out or program is None or link is None or answer is None:
        return None
    same = taken.store.read(answer.digest, 100) == b"4217\n" and program.mode == 0o755 and link.target == "deep"
    return f"{len(kept)} entries as they were left" if same else None
