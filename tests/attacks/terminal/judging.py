"""A terminal task as a real pack, and a workspace before its real verifier."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from securebench import _fs
from securebench.audit.plays.terminal import load_task, verify, write_pack
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.dangerous_commands import VerificationPolicy
from securebench.families.base import CandidateKind
from securebench.sandboxes.base import Sandbox
from securebench.verifiers.base import VerificationResult

Content = str | bytes | Callable[[Path], None]
"""Text, bytes, or something that makes the entry itself; a text that begins with `#!` is executable."""


def lay(directory: Path, files: Mapping[str, Content]) -> None:
    for path, content in files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(place)
            continue
        data = content.encode() if isinstance(content, str) else content
        place.write_bytes(data)
        place.chmod(0o755 if data.startswith((b"#!", b"\x7fELF")) else 0o644)


def make_pack(directory: Path, tests: Mapping[str, str], evaluation: Mapping[str, Any], **environment: Any) -> Path:
    return write_pack(directory, tests, evaluation, {}, environment)


def judge(
    pack: Path,
    workspace: Mapping[str, Content],
    sandbox: Sandbox,
    policy: VerificationPolicy | None = None,
) -> VerificationResult:
    """The verdict on a workspace, captured by the strict reader as after a real run."""
    made = pack.parent / f"workspace-{os.urandom(4).hex()}"
    made.mkdir()
    lay(made, workspace)
    store = CandidateStore(pack.parent / "store")
    with _fs.open_directory(made) as root:
        captured = read_tree(root, store)
    store.save(captured.tree)
    task = load_task(pack)
    candidate = CandidateArtifact(task.id, CandidateKind.WORKSPACE, workspace=captured.tree.digest)
    return anyio.run(partial(verify, task, candidate, sandbox, store, policy))
