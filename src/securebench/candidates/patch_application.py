"""A patch that arrived as text becomes a tree: applied exactly, in a throw-away sandbox, on a pristine tree.

`git apply` runs on a fresh copy with a git directory of ours, whose attributes switch off every conversion. A hunk
that fits only somewhere else than it says does not fit. The result is captured by the strict reader, so what the patch
said about itself does not matter any more."""

from __future__ import annotations

import re
from pathlib import Path

from anyio import to_thread

from securebench._leftovers import staging_directory
from securebench.candidates.captured import Budget, Captured
from securebench.candidates.entry_names import shown
from securebench.candidates.patch_text import Section, check_patch
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree
from securebench.errors import CandidateError, FailureReason, InfrastructureError
from securebench.sandboxes.base import Bind, Command, Limits, Outcome, Sandbox, SandboxResult, SandboxSpec, Scratch

MIB = 2**20
_WORK, _GIT = "/work", "/git"
_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_DIR": _GIT,
    "GIT_WORK_TREE": _WORK,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tignorecase = false
\tprecomposeunicode = false
\tattributesfile = /dev/null
"""
_ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding -whitespace\n"
_APPLY = ("git", "apply", "--verbose", "--whitespace=nowarn", "-p1", "-")
_FAILED = re.compile(r"error: patch failed: (.*):(\d+)\Z")
_MOVED = re.compile(r"Hunk #\d+ succeeded at \d+ \(offset -?\d+ lines?\)|Context reduced to ")
_DEFAULT = Budget()


async def apply_patch(
    text: str, pristine: Tree, store: CandidateStore, sandbox: Sandbox, budget: Budget = _DEFAULT
) -> Captured:
    """The tree that a patch makes of `pristine`, whose contents are in the store.

    Raises CandidateError when it is not a patch or does not fit exactly, naming the line or hunk; StoreError and
    InfrastructureError when the host failed."""
    sections = check_patch(text)
    patch = text if text.endswith("\n") else f"{text}\n"
    with staging_directory() as staging:
        (seed := staging / "seed").mkdir(mode=0o755)
        await to_thread.run_sync(store.materialize, pristine, seed)
        git = _trusted_git_directory(staging)
        async with sandbox.open(_spec(seed, git, pristine, len(patch))) as session:
            there = await session.run(Command(("git", "version")))
            if not there.ok:
                raise InfrastructureError("git cannot be run in the sandbox; install git on this host")
            result = await session.run(Command(_APPLY, stdin=patch.encode()))
            await session.stop()
            _check_result(result, sections)
            return await to_thread.run_sync(read_tree, session.scratch(_WORK), store, budget)


def _trusted_git_directory(staging: Path) -> Path:
    """An empty repository that says nothing but our own settings."""
    git = staging / "git"
    for part in (git, git / "objects", git / "refs", git / "info"):
        part.mkdir(mode=0o755)
    (git / "HEAD").write_text("ref: refs/heads/none\n")
    (git / "config").write_text(_CONFIG)
    (git / "info/attributes").write_text(_ATTRIBUTES)
    for path in (git, *git.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return git


def _spec(seed: Path, git: Path, pristine: Tree, patch: int) -> SandboxSpec:
    room = 2 * pristine.total_bytes + 4096 * len(pristine.entries) + 16 * patch + 256 * MIB
    largest = max((entry.size for entry in pristine.files), default=0)
    return SandboxSpec(
        mounts=(Scratch(_WORK, room, seed), Bind(git, _GIT)),
        env=_ENV,
        cwd=_WORK,
        limits=Limits(wall_seconds=60, memory=2048 * MIB, pids=32, file_size=largest + 1024 * MIB, output=16 * MIB),
    )


def _check_result(result: SandboxResult, sections: tuple[Section, ...]) -> None:
    if result.outcome is not Outcome.EXITED:
        message = f"the patch could not be applied within its limits ({result.outcome})"
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, message)
    lines = [shown(line) for line in result.stderr.data.decode("utf-8", "replace").splitlines()]
    if result.exit_code != 0:
        errors = [
            line for line in lines if line.startswith(("error:", "fatal:")) and not line.endswith("searching for:")
        ]
        errors = errors or ["error: git gave no reason"]
        words = "; ".join(_named(line, sections) for line in errors[:3])
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, f"the patch does not apply: {words[:1000]}")
    if moved := next(((index, line) for index, line in enumerate(lines) if _MOVED.match(line)), None):
        place = next((line for line in reversed(lines[: moved[0]]) if line.startswith("Checking patch ")), "")
        name = place.removeprefix("Checking patch ").removesuffix("...")
        message = f"the patch does not apply exactly: {name}: {moved[1]}"
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, message[:1000])
    if result.stderr.truncated:
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, "the patch has too many sections to be applied")


def _named(line: str, sections: tuple[Section, ...]) -> str:
    """git names the file and the line of the old file; the number of the hunk is easier to find."""
    match = _FAILED.match(line)
    if match is None:
        return line.partition(": ")[2]
    for section in sections:
        for hunk in section.hunks:
            if section.name.strip('"') == match[1] and hunk.old_start == int(match[2]):
                return f"hunk {hunk.number} of {match[1]} (line {match[2]}) does not match"
    return f"{match[1]}, line {match[2]}, does not match"
