"""One checker, one workspace, and the sandboxes for both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any

from anyio import to_thread

from securebench import _fs
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree
from securebench.environment import TaskEnvironment
from securebench.errors import PackError
from securebench.resources import PackFile
from securebench.sandboxes.base import (
    HOST_ROOT_PATHS,
    MIB,
    Bind,
    Limits,
    Mount,
    Network,
    Sandbox,
    SandboxSpec,
    Scratch,
    root_of,
)
from securebench.verifiers.base import Assurance
from securebench.verifiers.checkers.hall import Hall, Seen, hold
from securebench.verifiers.checkers.tools import TOOLS, lay_out, real_python, stand_ins, tool_mounts
from securebench.verifiers.checkers.view import CheckerView, checker_view
from securebench.verifiers.host_tools import host_sandbox
from securebench.verifiers.shared_files import SharedFiles, shared_directory
from securebench.verifiers.tree_room import disk_for
from securebench.workspaces.copying import copy_pack_file
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget

TESTS, DATA, LOGS = "/tests", "/securebench/workspace", "/logs"
DEFAULT_TIMEOUT = 300.0
_GRACE = 60.0  # seconds a sandbox may live beyond its checker's time: starting and ending it is not the checker's doing
_HEAD = 256
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Bench:
    """`argv` is run in `/tests`, where `files` lie; the workspace lies at the task's working directory."""

    task_id: str
    argv: tuple[str, ...]
    files: tuple[PackFile, ...]
    tree: Tree
    store: CandidateStore
    environment: TaskEnvironment
    staging: Path
    assurance: Assurance = Assurance.ISOLATED
    timeout_seconds: float | None = None
    capabilities: frozenset[str] = frozenset()
    shared: SharedFiles | None = None

    def __post_init__(self) -> None:
        if self.environment.workdir == "/":
            raise PackError(f"task {self.task_id}: environment.workdir cannot be / itself")

    async def run(self, sandbox: Sandbox) -> Seen:
        """The checker to its end: beside the workspace where it is `shared_process`, elsewhere otherwise. Raises
        PackError, SandboxError, SandboxUnavailable."""
        disk_for(self.tree, self.environment)
        async with self._shown() as shown:
            if self.assurance is Assurance.SHARED_PROCESS:
                spec = await to_thread.run_sync(self._worker_spec, shown)

                async def same() -> SandboxSpec:
                    return spec

                return await hold(Hall(sandbox, spec, sandbox, same, self.seconds), self._start())

            async def worker() -> SandboxSpec:
                return await to_thread.run_sync(self._worker_spec)

            host = await host_sandbox(sandbox)
            spec = await to_thread.run_sync(self._checker_spec, shown)
            return await hold(Hall(host, spec, sandbox, worker, self.seconds, real_python()), self._start())

    @asynccontextmanager
    async def _shown(self) -> AsyncIterator[tuple[Mount, ...]]:
        """What a checker sees besides the workspace, the same for every candidate. In the worker nothing stands in."""
        workdir, isolated = self.environment.workdir, self.assurance is not Assurance.SHARED_PROCESS
        tests = shared_directory(self.shared, ("tests", self.files), self._lay_tests)
        tools = partial(lay_out, workdir, DATA, isolated)
        async with (
            tests as tests_made,
            shared_directory(self.shared, ("tools", workdir, isolated), tools) as tools_made,
            shared_directory(self.shared, "logs", _lay_logs) as logs,
        ):
            yield (
                Bind(tests_made, TESTS), Scratch(LOGS, 16 * MIB, logs), *tool_mounts(tools_made, isolated)
            )  # fmt: skip

    @property
    def seconds(self) -> float:
        return self.timeout_seconds or self.environment.timeout_seconds or DEFAULT_TIMEOUT

    @cached_property
    def view(self) -> CheckerView:
        return checker_view(self.tree, self._head, self.store.put, stand_ins())

    def _start(self) -> dict[str, Any]:
        isolated = self.assurance is not Assurance.SHARED_PROCESS
        return {
            "argv": list(self.argv),
            "cwd": TESTS,
            "executable": [*HOST_ROOT_PATHS, TOOLS, TESTS, self.environment.workdir] if isolated else [],
            "env": {
                "PATH": f"{TOOLS}/bin:{_PATH}",
                "HOME": "/tmp/home",  # noqa: S108 — the sandbox's own
                "LANG": "C.UTF-8",
                "TEST_DIR": TESTS,
                "SECUREBENCH_WORKDIR": self.environment.workdir,
                "SECUREBENCH_WORKSPACE": DATA if isolated else self.environment.workdir,
            },
        }

    def _checker_spec(self, shown: tuple[Mount, ...]) -> SandboxSpec:
        view = self.view
        live = data = self._made("live")
        self.store.materialize(view.live, live)
        if view.data is not None:
            data = self._made("data")
            self.store.materialize(view.data, data)
        return SandboxSpec(
            mounts=(Bind(live, self.environment.workdir), Bind(data, DATA), *shown),
            cwd=TESTS,
            env={"PATH": _PATH},
            network=Network.LOOPBACK,
            limits=Limits(wall_seconds=self.seconds + _GRACE, pids=512, tmp=256 * MIB),
        )

    def _worker_spec(self, more: tuple[Mount, ...] = ()) -> SandboxSpec:
        """The workspace writable and executable; with `more`, the checker beside it."""
        environment, defaults = self.environment, Limits()
        seed = self._made("worker")
        self.store.materialize(self.tree, seed)
        return SandboxSpec(
            root=root_of(environment.image),
            mounts=(Scratch(environment.workdir, disk_for(self.tree, environment), seed), *more),
            env={"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8"},  # noqa: S108 — the sandbox's own
            cwd=environment.workdir,
            network=Network.LOOPBACK,
            limits=Limits(
                wall_seconds=self.seconds + _GRACE,
                memory=environment.memory or defaults.memory,
                cpus=environment.cpus,
                pids=environment.pids or defaults.pids,
            ),
            capabilities=self.capabilities,
        )

    def _lay_tests(self, directory: Path) -> None:
        """The checker and its files, as they lie in `/tests`."""
        budget = WorkspaceBudget(MaterializationLimits())
        with _fs.open_directory(directory) as root:
            for file in self.files:
                try:
                    copy_pack_file(file, root, tests_place(file.mount), budget)
                except (_fs.UnsafeEntry, FileExistsError) as error:
                    raise PackError(f"task {self.task_id}: {error}") from error

    def _head(self, digest: str) -> bytes:
        return next(self.store.chunks(digest), b"")[:_HEAD]

    def _made(self, name: str) -> Path:
        (directory := self.staging / name).mkdir()
        directory.chmod(0o755)
        return directory


def _lay_logs(directory: Path) -> None:
    (directory / "verifier").mkdir()


def tests_place(mount: PurePosixPath) -> PurePosixPath:
    """`tests/check.py` and `check.py` both lie at `/tests/check.py`."""
    parts = mount.parts[1:] if len(mount.parts) > 1 and mount.parts[0] == "tests" else mount.parts
    return PurePosixPath(*parts)


def hall_usage(seen: Seen) -> Mapping[str, Any]:
    """What the worker and the checker took, for the record."""
    cpu = [result.usage.cpu_seconds for result in seen.results]
    known = [seconds for seconds in cpu if seconds is not None]
    return {
        "worker_wall_seconds": round(sum(result.usage.wall_seconds for result in seen.results), 4),
        "worker_cpu_seconds": round(sum(known), 4) if len(known) == len(cpu) else None,
        "checker_wall_seconds": round(seen.checker.usage.wall_seconds, 4) if seen.checker else None,
        "guarantees": sorted(map(str, seen.checker.guarantees)) if seen.checker else [],
    }
