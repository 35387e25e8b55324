"""Reference solutions that are a script: run in a sandbox on the workspace as agents get it, and what it leaves is the
candidate. The script is the pack author's, who is trusted for answers and not with the host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from anyio import to_thread

from securebench import _fs
from securebench._leftovers import staging_directory
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, PackError
from securebench.resources import PackFile
from securebench.sandboxes.base import (
    Bind,
    Command,
    Limits,
    Network,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Scratch,
    root_of,
)
from securebench.verifiers.tree_room import disk_for
from securebench.workspaces.copying import copy_pack_file
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget

SOLUTION, SCRIPT = "/solution", "solve.sh"
DEFAULT_TIMEOUT = 300.0
_TOLD = 300
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Script:
    """A file of the pack that makes the reference: a script, or a directory with `solve.sh`. It lies in `/solution`."""

    file: PackFile


@dataclass(frozen=True, slots=True)
class Solved:
    """What a script made of a workspace; `note` says how it ended where that was no success."""

    tree: Tree
    note: str


async def solve(
    script: Script, base: Tree, environment: TaskEnvironment, sandbox: Sandbox, store: CandidateStore
) -> Solved:
    """Run it to its end without a network. Raises PackError for a script that is none or leaves too much, SandboxError,
    StoreError."""
    with staging_directory() as staging:
        name = await to_thread.run_sync(_lay_out, script.file, staging)
        (seed := staging / "workspace").mkdir()
        await to_thread.run_sync(store.materialize, base, seed)
        async with sandbox.open(_spec(environment, base, staging)) as session:
            result = await session.run(Command(("bash", f"{SOLUTION}/{name}")))
            await session.stop()
            try:
                captured = await to_thread.run_sync(read_tree, session.scratch(environment.workdir), store)
            except CandidateError as error:
                raise PackError(f"what reference_script leaves cannot be taken over: {error}") from error
    return Solved(captured.tree, _note(result))


def _lay_out(file: PackFile, staging: Path) -> str:
    """Copy it as it shall lie in `/solution`; the name of the script there."""
    folder, whole = PurePosixPath("solution"), (file.root / file.path).is_dir()
    with _fs.open_directory(staging) as root:
        place = folder if whole else folder / file.path.name
        copy_pack_file(file, root, place, WorkspaceBudget(MaterializationLimits()))
    if whole and not (staging / folder / SCRIPT).is_file():
        raise PackError(f"reference_script names a directory without {SCRIPT}")
    return SCRIPT if whole else file.path.name


def _spec(environment: TaskEnvironment, base: Tree, staging: Path) -> SandboxSpec:
    defaults = Limits()
    return SandboxSpec(
        root=root_of(environment.image),
        mounts=(
            Scratch(environment.workdir, disk_for(base, environment), staging / "workspace"),
            Bind(staging / "solution", SOLUTION),
        ),
        env={"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8"},  # noqa: S108 — the sandbox's own
        cwd=environment.workdir,
        network=Network.LOOPBACK,
        limits=Limits(
            wall_seconds=environment.timeout_seconds or DEFAULT_TIMEOUT,
            memory=environment.memory or defaults.memory,
            cpus=environment.cpus,
            pids=environment.pids or defaults.pids,
        ),
    )


def _note(result: SandboxResult) -> str:
    if result.ok:
        return ""
    said = result.stderr.data.decode("utf-8", "replace").strip()[-_TOLD:]
    return f"reference_script ended with {result.outcome}, exit code {result.exit_code}: {said}"
