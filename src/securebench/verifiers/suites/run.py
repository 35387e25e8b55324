"""Run a staged suite on a tree, in a sandbox of its own that is used once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from securebench import _json
from securebench._text import visible
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree
from securebench.environment import TaskEnvironment
from securebench.sandboxes.base import (
    Bind,
    Command,
    Limits,
    Mount,
    Outcome,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Scratch,
    root_of,
)
from securebench.verifiers.rooms.libraries import INSIDE as LIBRARIES
from securebench.verifiers.shared_files import SharedFiles, shared_directory
from securebench.verifiers.suites.files import suite_file
from securebench.verifiers.suites.observations import Report, read_report
from securebench.verifiers.suites.staging import Staged
from securebench.verifiers.tree_room import disk_for, staging

SUITE = "/securebench/suite"
DEFAULT_TIMEOUT = 600.0
_LAST_LINE = 300
BYTES_PER_TEST = 2000  # of report lines: three phases with a long id each


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """What one run of a suite reported, and how its process ended."""

    report: Report
    result: SandboxResult

    @property
    def stopped(self) -> str | None:
        """Why it was stopped from outside, in words, or None where it ended by itself."""
        return _STOPPED.get(self.result.outcome)


def last_words(result: SandboxResult) -> str:
    """How a program ended and the last line of its complaints, for the author of a pack: of the reference only, since
    a candidate may say what it likes. A longer line is not told: what scrubs secrets does not know half of one."""
    ended = f"exit code {result.exit_code}" if result.outcome is Outcome.EXITED else f"ended with {result.outcome}"
    last = result.stderr.data.decode("utf-8", "replace").rstrip().rpartition("\n")[2].strip()
    return f"{ended}: {visible(last)}" if 0 < len(last) <= _LAST_LINE and not result.stderr.truncated else ended


_STOPPED = {
    Outcome.TIMEOUT: "ran out of time",
    Outcome.CPU_LIMIT: "ran out of processor time",
    Outcome.OUT_OF_MEMORY: "ran out of memory",
    Outcome.OUTPUT_LIMIT: "wrote too much",
}


@dataclass(frozen=True, slots=True)
class SuitePlace:
    """Where suites of one task run: the same for the candidate, the reference and the sabotaged candidate."""

    sandbox: Sandbox
    store: CandidateStore
    environment: TaskEnvironment
    libraries: tuple[Bind, ...]
    workdir: str  # of the suite, inside the sandbox
    timeout_seconds: float | None = None
    beside: tuple[str, ...] = ()  # directories of tests, from where modules are imported before all others of the tree
    shared: SharedFiles | None = None
    python: str = "python3"

    async def run(self, tree: Tree, staged: Staged) -> SuiteRun:
        """Raises SandboxError and StoreError; whatever the code in the tree does is in the run."""
        runner = shared_directory(self.shared, ("suite", staged.kind), partial(_write_runner, staged.kind))
        async with staging() as place, runner as programs:
            (seed := place / "tree").mkdir()
            await to_thread.run_sync(self.store.materialize, tree, seed)
            mounts: tuple[Mount, ...] = (
                Scratch(self.environment.workdir, disk_for(tree, self.environment), seed),
                Bind(programs / "suite.py", f"{SUITE}/suite.py"),
                *self.libraries,
            )
            async with self.sandbox.open(self._spec(mounts, staged)) as session:
                result = await session.run(self._command(staged))
        return SuiteRun(read_report(result.stdout.data), result)

    def _spec(self, mounts: Sequence[Mount], staged: Staged) -> SandboxSpec:
        environment, defaults = self.environment, Limits()
        return SandboxSpec(
            root=root_of(environment.image),
            mounts=tuple(mounts),
            env={"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"},  # noqa: S108 — its own
            cwd=self.workdir,
            limits=Limits(
                wall_seconds=self.timeout_seconds or environment.timeout_seconds or DEFAULT_TIMEOUT,
                memory=environment.memory or defaults.memory,
                cpus=environment.cpus,
                pids=environment.pids or defaults.pids,
                output=max(defaults.output, BYTES_PER_TEST * len(staged.chosen)),
            ),
        )

    def _command(self, staged: Staged) -> Command:
        job = {
            "root": self.workdir,
            "libraries": [LIBRARIES],
            "beside": self.beside,
            "files": sorted({test.file for test in staged.chosen}),
            "tests": [[test.file, test.name] for test in staged.chosen],
        }
        return Command((self.python, "-I", "-B", f"{SUITE}/suite.py"), stdin=_json.dumps(job).encode())


def _write_runner(kind: str, directory: Path) -> None:
    (runner := directory / "suite.py").write_bytes(suite_file(kind))
    runner.chmod(0o444)
