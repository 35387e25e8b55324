"""Graders of repositories that people write first. Everything runs in a sandbox all the same: the attacks are real."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from securebench.audit.plays.repository import Changes, put
from securebench.audit.plays.repository_tasks import Repository, write
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.sandboxes.base import Command, Limits, SandboxResult, SandboxSpec, Scratch, run_once
from securebench.verifiers.rooms.libraries import INSIDE, pytest_mounts

ROOT = "/repo"
SECONDS = 60
_PASSED = "the grader is satisfied"


@dataclass(frozen=True, slots=True)
class ExitCode:
    """Puts the hidden tests in last, runs them where the candidate is, and believes the exit code. `first` is a
    program that it runs before: whatever projects do before their tests. `options` are for the runner."""

    repository: Repository
    changes: Changes
    first: str = ""
    options: tuple[str, ...] = ()

    async def on(self, ground: Ground) -> Seen:
        tests = tuple((path, text) for path, text in self.repository.tests.items())
        return await _graded(ground, self.repository, (*self.changes, *tests), self.first, self.options)


@dataclass(frozen=True, slots=True)
class TestsAsFound:
    """Believes the tests that it finds: hidden ones are put in only where nothing stands yet, with `folded` also under
    a name that some file systems take for the same."""

    __test__ = False

    repository: Repository
    changes: Changes
    folded: bool = False

    async def on(self, ground: Ground) -> Seen:
        program = _FILL_IN.replace("TESTS", repr(dict(self.repository.tests))).replace("FOLDED", repr(self.folded))
        return await _graded(ground, self.repository, self.changes, program)


_FILL_IN = """
import os
for path, text in TESTS.items():
    folder = os.path.dirname(path) or "."
    try:
        there = os.listdir(folder)
    except OSError:
        there = []
    rivals = [name for name in there if name.casefold() == os.path.basename(path).casefold()]
    if os.path.lexists(path) or FOLDED and rivals:
        if not os.path.lexists(path):
            os.rename(os.path.join(folder, rivals[0]), path)
        continue
    os.makedirs(folder, exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
"""


async def _graded(
    ground: Ground, repository: Repository, files: Changes, first: str, options: tuple[str, ...] = ()
) -> Seen:
    def lay_down(work: Path) -> None:
        write(work, repository.files)
        for path, content in files:
            put(work, path, content)

    await to_thread.run_sync(lay_down, work := ground.directory / "work")
    command = shlex.join((*test_command(repository), *options))
    return believed(await run_in(ground, work, f"{_python(first)}exec {command}"))


def _python(program: str) -> str:
    return f"python3 -c {shlex.quote(program)} || exit 1; " if program else ""


def test_command(repository: Repository) -> tuple[str, ...]:
    tests = (*repository.fail_to_pass, *repository.pass_to_pass)
    if "command" in repository.suite:
        return tuple(repository.suite["command"])
    if repository.runner == "pytest":
        return "python3", "-m", "pytest", "-q", *sorted({test.partition("::")[0] for test in tests})
    return "python3", "-m", "unittest", *tests


async def run_in(ground: Ground, work: Path, script: str, stdin: bytes = b"") -> SandboxResult:
    """A shell script in a sandbox whose working directory is a copy of `work`, first on the path."""
    spec = SandboxSpec(
        root=ground.root,
        mounts=(Scratch(ROOT, seed=work), *pytest_mounts()),
        env={
            "PYTHONPATH": f"{ROOT}:{INSIDE}",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": ROOT,
            "PYTHONDONTWRITEBYTECODE": "1",
            "LC_ALL": "C.UTF-8",
        },
        cwd=ROOT,
        limits=Limits(wall_seconds=SECONDS),
    )
    return await run_once(ground.sandbox, spec, Command(("sh", "-c", script), stdin=stdin))


def believed(result: SandboxResult) -> Seen:
    """An exit code taken for a verdict."""
    if result.ok:
        return Seen(End.REACHED, _PASSED)
    said = (result.stdout.data + result.stderr.data)[-400:].decode("utf-8", "replace")
    return Seen(End.MISSED, f"{result.outcome}, exit code {result.exit_code}: {said}")
