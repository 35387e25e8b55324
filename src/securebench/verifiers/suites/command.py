"""Suites that are a command: a hidden file that drives the repository from outside, or a target of the repository.

Where the command names one of the hidden files, that file is a checker: it runs away from the candidate's code, with
the repository as its workspace, and the verdict is `isolated`. Any other command is the repository's own (`make test`):
it runs beside candidate code, its exit code is the word of that process, and sabotage is the control."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from anyio import to_thread

from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree
from securebench.environment import TaskEnvironment
from securebench.errors import PackError
from securebench.families.repo_patch import CommandSuite
from securebench.resources import PackFile
from securebench.sandboxes.base import (
    Command,
    Limits,
    Network,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Scratch,
    root_of,
    run_once,
)
from securebench.verifiers.base import Assurance
from securebench.verifiers.checkers.bench import TESTS, Bench, tests_place
from securebench.verifiers.checkers.verdict import judge_checker
from securebench.verifiers.shared_files import SharedFiles
from securebench.verifiers.suites.broken import broken
from securebench.verifiers.suites.evaluation import Control
from securebench.verifiers.suites.repository_task import RepositoryTask
from securebench.verifiers.suites.run import DEFAULT_TIMEOUT, last_words
from securebench.verifiers.tree_room import disk_for, staging


@dataclass(frozen=True, slots=True)
class CommandVerdict:
    """Whether the command was satisfied, in words why not, and the controls."""

    passed: bool
    note: str
    assurance: Assurance
    controls: tuple[Control, ...] = ()
    tampered: bool = False
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class CommandTask:
    """A command ready to judge any tree of one task."""

    task_id: str
    repository: RepositoryTask
    suite: CommandSuite
    files: tuple[PackFile, ...]  # hidden, in the order of the row
    environment: TaskEnvironment
    sandbox: Sandbox
    store: CandidateStore
    shared: SharedFiles | None = None
    sabotage_fails: bool = False  # whether the broken reference fails, so that a broken candidate must

    def over(self, store: CandidateStore) -> CommandTask:
        """As `RepositoryTask.over`."""
        return replace(self, repository=self.repository.over(store), store=store)

    @property
    def checker(self) -> tuple[str, ...] | None:
        """The command with the hidden files it names at their place in `/tests`; None where it names none."""
        places = {file.mount: f"{TESTS}/{tests_place(file.mount)}" for file in self.files}
        argv = tuple(places.get(PurePosixPath(argument), argument) for argument in self.suite.command)
        return argv if argv != self.suite.command else None

    async def calibrated(self) -> CommandTask:
        """With what the reference solution teaches. Raises PackError where it does not satisfy the command."""
        gold = self.repository.gold
        if gold is None or self.checker is not None:
            return self
        result = await self._beside(gold)
        if not result.ok:
            why = last_words(result)
            raise PackError(f"task {self.task_id}: the gold patch does not satisfy tests.command here: {why}")
        worse = await self._beside(broken(self.repository, gold))
        return replace(self, sabotage_fails=not worse.ok)

    async def judge(self, tree: Tree) -> CommandVerdict:
        """Raises SandboxError, PackError; whatever the code in the tree does is in the verdict."""
        if (argv := self.checker) is not None:
            return await self._away(argv, tree)
        result = await self._beside(tree)
        if not result.ok:
            note = f"the command ended with {result.outcome}, exit code {result.exit_code}"
            return CommandVerdict(False, note, Assurance.SHARED_PROCESS)
        if not self.sabotage_fails:
            control = Control("sabotage", None, "not run: no gold patch, or breaking it makes no difference")
            return CommandVerdict(True, "", Assurance.SHARED_PROCESS, (control,))
        held = not (await self._beside(broken(self.repository, tree))).ok
        control = Control("sabotage", held, "the command on broken code " + ("failed" if held else "was satisfied"))
        note = "" if held else "the command is satisfied with broken code"
        return CommandVerdict(held, note, Assurance.SHARED_PROCESS, (control,), tampered=not held)

    async def _away(self, argv: tuple[str, ...], tree: Tree) -> CommandVerdict:
        async with staging() as directory:
            bench = Bench(
                task_id=self.task_id,
                argv=argv,
                files=self.files,
                tree=self.repository.ready(tree),
                store=self.store,
                environment=self.environment,
                staging=directory,
                timeout_seconds=self.suite.timeout_seconds,
                shared=self.shared,
            )
            seen = await bench.run(self.sandbox)
        found = judge_checker("script", seen)
        return CommandVerdict(found.passed, found.note, Assurance.ISOLATED, stdout=found.stdout, stderr=found.stderr)

    async def _beside(self, tree: Tree) -> SandboxResult:
        """How the command ended on a tree."""
        environment, defaults = self.environment, Limits()
        place = PurePosixPath(environment.workdir) / (self.suite.workdir or ".")
        async with staging() as directory:
            (seed := directory / "tree").mkdir()
            await to_thread.run_sync(self.store.materialize, self.repository.ready(tree), seed)
            spec = SandboxSpec(
                root=root_of(environment.image),
                mounts=(Scratch(environment.workdir, disk_for(tree, environment), seed),),
                env={"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"},  # noqa: S108
                cwd=str(place),
                network=Network.LOOPBACK,
                limits=Limits(
                    wall_seconds=self.suite.timeout_seconds or environment.timeout_seconds or DEFAULT_TIMEOUT,
                    memory=environment.memory or defaults.memory,
                    cpus=environment.cpus,
                    pids=environment.pids or defaults.pids,
                ),
            )
            return await run_once(self.sandbox, spec, Command(self.suite.command))
