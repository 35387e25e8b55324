"""A repository as a real pack, and a candidate's changes before its real verifier."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.attacks.repositories.naive import write
from tests.attacks.repositories.repositories import Repository

from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.families.base import CandidateKind
from securebench.resources import Component
from securebench.sandboxes.base import Sandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Verification, VerificationResult
from securebench.verifiers.repo_patch import RepoPatchVerifier

SEED = b"a seed no candidate knows"


def as_patch(before: Mapping[str, str], changes: Mapping[str, str]) -> str:
    """A git-style patch of text files."""
    parts = []
    for path, new in sorted(changes.items()):
        old = before.get(path)
        if old == new:
            continue
        parts.append(f"diff --git a/{path} b/{path}\n" + ("" if old is not None else "new file mode 100644\n"))
        lines = difflib.unified_diff(
            (old or "").splitlines(True),
            new.splitlines(True),
            f"a/{path}" if old is not None else "/dev/null",
            f"b/{path}",
        )
        parts.extend(lines)
    return "".join(parts)


def make_pack(directory: Path, repository: Repository, **tests: Any) -> SecureBenchTask:
    """Write the pack of one repository and compile its task. `tests` are further fields of `eval.tests`."""
    write(directory / "assets/repo", repository.files)
    write(directory / "hidden/suite", repository.tests)
    row = {
        "id": repository.name,
        "family": "repo_patch",
        "input": {"repo": "repo", "base_commit": "main", "instructions": "Fix the bug."},
        "assets": [{"path": "repo"}],
        "eval": {
            "tests": {
                "source": repository.runner,
                "fail_to_pass": repository.fail_to_pass,
                "pass_to_pass": repository.pass_to_pass,
                "files": [{"path": f"suite/{path}", "mount": path} for path in repository.tests],
                "timeout_seconds": 20,
                **tests,
            },
            "gold_patch": as_patch(repository.files, repository.fix),
        },
    }
    (directory / "manifest.yaml").write_text("id: repositories\nversion: 1\n")
    (directory / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    return compile_benchmark_pack(load_benchmark_pack(directory / "manifest.yaml", directory / "tasks.jsonl"))[0]


async def judge(
    verifier: RepoPatchVerifier,
    task: SecureBenchTask,
    repository: Repository,
    changes: Mapping[str, str],
    sandbox: Sandbox,
    store: CandidateStore,
) -> VerificationResult:
    """The verdict on changes that arrive as the text of a patch."""
    patch = as_patch(repository.files, changes)
    return await verifier.verify(
        Verification(
            task_id=task.id,
            candidate=CandidateArtifact(task.id, CandidateKind.PATCH, patch=patch),
            evaluator=task.view_for(Component.EVALUATOR),
            tests=task.view_for(Component.TEST_SANDBOX),
            worker=task.view_for(Component.WORKER),
            environment=task.environment,
            sandbox=sandbox,
            store=store,
            seed=SEED,
        )
    )
