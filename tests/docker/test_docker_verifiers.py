"""Checkers and suites of tasks with an image: the checker here, the candidate's code in a container of that image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.attacks.repositories import judging as repositories
from tests.attacks.repositories.cheats import CHEATS
from tests.attacks.repositories.repositories import REPOSITORIES
from tests.attacks.terminal import judging as terminal
from tests.docker.engine import IMAGE, Imaged, own_containers
from tests.e2e.workbench import need_bubblewrap

from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.errors import FailureReason
from securebench.verifiers.base import Assurance, VerificationResult
from securebench.verifiers.repo_patch import RepoPatchVerifier

CHECKER = """\
import subprocess
from securebench import worker

def test_program():
    done = subprocess.run(["/app/double.sh", "21"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "42\\n")

def test_where_it_ran():
    assert worker.run(["sh", "-c", "ls -d /tests /securebench /logs"]).stdout == b""
    assert worker.run(["pwd"]).stdout == b"/app\\n"
"""
RIGHT, WRONG = "#!/bin/sh\necho $((2 * $1))\n", "#!/bin/sh\necho 1 passed\n"


def test_terminal_task_with_an_image(sandbox: Imaged, tmp_path: Path) -> None:
    need_bubblewrap()
    evaluation = {"checker": {"source": "pytest", "path": "test_it.py", "timeout_seconds": 90}}
    pack = terminal.make_pack(tmp_path / "pack", {"test_it.py": CHECKER}, evaluation, image=IMAGE)
    right = terminal.judge(pack, {"double.sh": RIGHT}, sandbox.real)
    assert right.passed, (right.stdout, right.stderr)
    assert right.assurance is Assurance.ISOLATED
    wrong = terminal.judge(pack, {"double.sh": WRONG}, sandbox.real)
    assert (wrong.passed, wrong.failure_reason) == (False, FailureReason.TESTS_FAILED)
    assert own_containers() == []


@pytest.mark.parametrize("name", ["calc"])
def test_repository_task_with_an_image(sandbox: Imaged, tmp_path: Path, name: str) -> None:
    need_bubblewrap()
    repository = next(one for one in REPOSITORIES if one.name == name)
    pack = tmp_path / "pack"
    repositories.make_pack(pack, repository, timeout_seconds=90)
    row = json.loads((pack / "tasks.jsonl").read_text())
    (pack / "tasks.jsonl").write_text(json.dumps({**row, "environment": {"image": IMAGE}}) + "\n")
    [task] = compile_benchmark_pack(load_benchmark_pack(pack / "manifest.yaml", pack / "tasks.jsonl"))
    verifier, store = RepoPatchVerifier(), CandidateStore(tmp_path / "store")
    forged = next(cheat for cheat in CHEATS if cheat.name == "package patches the reports")

    def verdict(changes: Mapping[str, str]) -> VerificationResult:
        return anyio.run(partial(repositories.judge, verifier, task, repository, changes, sandbox.real, store))

    right, wrong, cheat = (verdict(c) for c in (repository.fix, repository.wrong, forged.changes(repository)))
    assert right.passed, right.stderr
    assert (wrong.passed, cheat.passed) == (False, False)
    assert own_containers() == []
