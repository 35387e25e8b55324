"""The weak side of code: naive graders, and a relay that believes its worker; all in the ground's sandbox."""

from __future__ import annotations

import json
from dataclasses import dataclass

from securebench.audit.suite.attack import End, Ground, NotHere, Seen
from securebench.audit.weak.grader_program import PROGRAM
from securebench.audit.weak.grader_relay import RELAY
from securebench.errors import ConfigError
from securebench.sandboxes.base import MIB, Bind, Command, Limits, Outcome, SandboxSpec, run_once
from securebench.verifiers.rooms.files import worker_program
from securebench.verifiers.rooms.libraries import INSIDE, pytest_mounts

_LIMITS = Limits(wall_seconds=90.0, memory=512 * MIB)


@dataclass(frozen=True, slots=True)
class Fools:
    """A candidate wants all these graders to say that it passed; `tests` are for the one that takes any."""

    source: str
    graders: tuple[str, ...]
    tests: str = ""

    async def on(self, ground: Ground) -> Seen:
        job = {"source": self.source, "tests": self.tests, "graders": self.graders, "libraries": INSIDE}
        mounts = _pytest() if {"pytest", "collected"} & set(self.graders) else ()
        spec = SandboxSpec(root=ground.root, mounts=mounts, limits=_LIMITS)
        command = Command(("python3", "-I", "-c", PROGRAM), stdin=json.dumps(job).encode())
        result = await run_once(ground.sandbox, spec, command)
        if not result.ok:
            return Seen(End.FAULT, result.stderr.data.decode(errors="replace")[-300:])
        fooled = set(json.loads(result.stdout.data))
        missed = set(self.graders) - fooled
        detail = f"it did not fool {', '.join(sorted(missed))}" if missed else f"it fooled {', '.join(sorted(fooled))}"
        return Seen(End.MISSED if missed else End.REACHED, detail)


@dataclass(frozen=True, slots=True)
class FoolsRelay:
    """A candidate in our own worker before a relay that checks nothing, and fails only a wrong answer that it saw: an
    end, a silence or nonsense is nobody's failure to it. One that only has a mistake in it has not beaten it."""

    source: str

    async def on(self, ground: Ground) -> Seen:
        job = {"source": self.source, "worker": worker_program().text}
        command = Command(("python3", "-I", "-c", RELAY), stdin=json.dumps(job).encode())
        result = await run_once(ground.sandbox, SandboxSpec(root=ground.root, limits=_LIMITS), command)
        said = result.stdout.data.decode(errors="replace").strip()
        if result.outcome is Outcome.SIGNALLED:
            return Seen(End.REACHED, "the relay was killed, and nobody failed")
        detail = f"{said} {result.stderr.data.decode(errors='replace')[-300:]}"
        return Seen(End.REACHED if said.startswith("passed") else End.MISSED, detail)


def _pytest() -> tuple[Bind, ...]:
    try:
        return pytest_mounts()
    except ConfigError:
        raise NotHere("pytest is not installed beside securebench") from None
