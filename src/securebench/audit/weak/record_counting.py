"""Aggregators that people write first: they believe files, lines and exit codes of the candidate, and leave out what
did not finish. What they believe comes from real sandboxes."""

from __future__ import annotations

import builtins
import json
from contextlib import suppress
from dataclasses import dataclass, replace

from securebench.audit.plays.repository import Changes, put
from securebench.audit.plays.repository_tasks import Repository, write
from securebench.audit.suite.attack import End, Ground, Play, Seen
from securebench.audit.weak.repository import run_in
from securebench.errors import SecureBenchError
from securebench.sandboxes.base import MIB, Command, Limits, SandboxResult, SandboxSpec, Scratch, run_once
from securebench.testing.faulty_sandbox import FaultySandbox

SMALL = Limits(wall_seconds=20.0, memory=128 * MIB, pids=24, output=256 * 1024)
_OF_LIMITS = frozenset({"OSError", "BlockingIOError", "MemoryError", "RecursionError"})
_TASK = "import json; json.dump({'task_id': 'hostile'}, open('task.json', 'w'))\n"


async def run_program(ground: Ground, program: str, limits: Limits) -> SandboxResult:
    """A program of the candidate's in a working directory of its own."""
    spec = SandboxSpec(ground.root, (Scratch("/work", 16 * MIB),), cwd="/work", limits=limits)
    return await run_once(ground.sandbox, spec, Command(("python3", "-c", program)))


def mistake(result: SandboxResult) -> str:
    """The error by which a program ended that has a mistake in it, and therefore beats nobody; those that limits bring
    about are none."""
    last = result.stderr.data.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
    name = last.partition(":")[0]
    kind = getattr(builtins, name, None)
    ordinary = isinstance(kind, type) and issubclass(kind, Exception) and name not in _OF_LIMITS
    return last if ordinary else ""


@dataclass(frozen=True, slots=True)
class OnlyFinished:
    """Takes whatever did not end well for a fault of the host: tries it again, and then leaves it out of the score."""

    program: str
    limits: Limits = SMALL

    async def on(self, ground: Ground) -> Seen:
        counted, starts = 0, 0
        for _ in range(2):
            starts += 1
            result = await run_program(ground, self.program, self.limits)
            with suppress(UnicodeDecodeError):
                counted = int(result.ok and "Answer" in result.stdout.data.decode())
            if counted:
                break
        if problem := mistake(result):
            return Seen(End.MISSED, f"the program has a mistake: {problem}")
        seen = f"started {starts} times, counted {counted} times; {result.outcome} {result.exit_code}"
        return Seen(End.MISSED if counted else End.REACHED, seen)


@dataclass(frozen=True, slots=True)
class OnlyAnswered:
    """Calls the candidate where its own grader runs, and leaves out what sends no result it can read."""

    source: str
    limits: Limits = SMALL

    async def on(self, ground: Ground) -> Seen:
        call = "import json\nnames = {}\nexec(SOURCE, names)\nprint(json.dumps(names['f'](1)))\n"
        result = await run_program(ground, call.replace("SOURCE", repr(self.source)), self.limits)
        if problem := mistake(result):
            return Seen(End.MISSED, f"the candidate has a mistake: {problem}")
        lines = result.stdout.data.splitlines()
        try:
            counted = result.ok and len(lines) == 1 and isinstance(json.loads(lines[0]), int)
        except (ValueError, RecursionError):
            counted = False
        return Seen(End.MISSED if counted else End.REACHED, f"{result.outcome} {result.exit_code}, {len(lines)} lines")


@dataclass(frozen=True, slots=True)
class RewardFile:
    """Reads the score from the first file of a known name that it finds where the candidate worked."""

    program: str
    names: tuple[str, ...] = ("reward.txt", "reward.json", "result.json", "score.txt")

    async def on(self, ground: Ground) -> Seen:
        spec = SandboxSpec(ground.root, (Scratch("/work", 16 * MIB),), cwd="/work", limits=SMALL)
        async with ground.sandbox.open(spec) as session:
            await session.run(Command(("python3", "-c", _TASK + self.program)))
            found = await session.run(Command(("cat", *self.names)))
        scored = b"1" in found.stdout.data
        return Seen(End.REACHED if scored else End.MISSED, found.stdout.data[:100].decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class OwnWord:
    """Takes the numbers that the candidate prints about itself for measurements."""

    program: str
    words: tuple[str, ...]

    async def on(self, ground: Ground) -> Seen:
        result = await run_program(ground, _TASK + self.program, SMALL)
        said = result.stdout.data.decode("utf-8", "replace")
        found = [word for word in self.words if word in said]
        return Seen(End.REACHED if found else End.MISSED, f"{found} of {said[:200]}")


@dataclass(frozen=True, slots=True)
class FailsOpen:
    """Starts from a pass, and only a failure that it sees changes that; an exception is logged and forgotten."""

    play: Play

    async def on(self, ground: Ground) -> Seen:
        passed, said = True, ""
        faulty = replace(ground, sandbox=FaultySandbox(ground.sandbox, opens=range(1, 100)))
        try:
            seen = await self.play.on(faulty)
            passed, said = seen.end is End.REACHED, f"a failure was seen: {seen.reason} {seen.detail}"
        except SecureBenchError as error:
            said = str(error)
        return Seen(End.REACHED if passed else End.MISSED, said)


@dataclass(frozen=True, slots=True)
class LogParser:
    """Runs the suite where the candidate is and reads its log: `name ... ok` is a pass, the last line about a test
    wins. With `absent` a test that the log says nothing about is taken for passed."""

    repository: Repository
    changes: Changes
    absent: bool = False

    async def on(self, ground: Ground) -> Seen:
        work = ground.directory / "work"
        write(work, {**self.repository.files, **self.repository.tests})
        for path, content in self.changes:
            put(work, path, content)
        tests = (*self.repository.fail_to_pass, *self.repository.pass_to_pass)
        result = await run_in(ground, work, f"python3 -m unittest -v {' '.join(tests)} 2>&1")
        log = result.stdout.data.decode("utf-8", "replace")
        passed = all(self._status(log, test.rpartition(".")[2]) == "ok" for test in tests)
        return Seen(End.REACHED if passed else End.MISSED, log[-400:])

    def _status(self, log: str, name: str) -> str:
        status = "ok" if self.absent else "missing"
        for line in log.splitlines():
            words = line.split()
            if words and words[0] == name and "..." in words[:-1]:
                status = words[words.index("...") + 1]
        return "ok" if self.absent and status == "skipped" else status
