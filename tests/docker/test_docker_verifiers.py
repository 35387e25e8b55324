"""Checkers and suites of tasks with an image: the checker here, the candidate's code in a container of that image."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.attacks.repositories import judging as repositories
from tests.attacks.repositories.repositories import REPOSITORIES, Repository
from tests.attacks.terminal import judging as terminal
from tests.attacks.terminal.cheats import Cheat as WorkspaceCheat
from tests.attacks.terminal.tasks import TASKS, TerminalTask
from tests.attacks.terminal.test_terminal_tasks import cases
from tests.docker.engine import IMAGE, Imaged, own_containers
from tests.e2e.workbench import need_bubblewrap

from securebench.audit.attacks.f_test_runner.cheats import IN_PROCESS
from securebench.audit.attacks.f_test_runner.cheats import Cheat as PatchCheat
from securebench.audit.attacks.f_test_runner.files import FILES
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.errors import FailureReason
from securebench.sandboxes.base import Sandbox
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


ALL = bool(os.environ.get("SECUREBENCH_ALL_ON_DOCKER"))  # every task and every cheat, some minutes
TERMINAL = [*cases()] if ALL else [*cases()][:1]
HONEST = TASKS if ALL else TASKS[:1]
REPOSITORY_CHEATS = [
    pytest.param(runner, cheat, id=f"{runner}: {cheat.name}")
    for runner in ("pytest", "unittest")
    for cheat in (*FILES, *IN_PROCESS)
    if runner in cheat.runners and cheat.name != "as-a-link"  # which no patch of text files can say
    if ALL or (runner, cheat.name) == ("unittest", "package-patches-the-runners")
]


def terminal_pack(directory: Path, task: TerminalTask) -> Path:
    need_bubblewrap()
    return terminal.make_pack(directory / "pack", task.tests, task.evaluation, image=IMAGE)


@pytest.mark.parametrize("task", [pytest.param(task, id=task.name) for task in HONEST])
def test_honest_workspace_passes(sandbox: Imaged, tmp_path: Path, task: TerminalTask) -> None:
    pack = terminal_pack(tmp_path, task)
    right = terminal.judge(pack, task.honest, sandbox.real)
    assert right.passed, (right.metadata, right.stdout, right.stderr)
    assert not terminal.judge(pack, task.wrong, sandbox.real).passed


@pytest.mark.parametrize(("task", "cheat"), TERMINAL)
def test_no_cheating_workspace_passes(
    sandbox: Imaged, tmp_path: Path, task: TerminalTask, cheat: WorkspaceCheat
) -> None:
    assert not terminal.judge(terminal_pack(tmp_path, task), cheat.workspace, sandbox.real).passed


@pytest.fixture(scope="module")
def courts(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Callable[[Sandbox, Mapping[str, str]], VerificationResult]]:
    """For each runner, a verdict on changes of one repository."""
    need_bubblewrap()
    return {runner: _court(tmp_path_factory.mktemp(runner), repository) for runner, repository in ATTACKED.items()}


ATTACKED = {r.runner: r for r in REPOSITORIES if r.name in {"intervals", "calc"}}


def _court(directory: Path, repository: Repository) -> Callable[[Sandbox, Mapping[str, str]], VerificationResult]:
    pack = directory / "pack"
    repositories.make_pack(pack, repository, timeout_seconds=90)
    row = json.loads((pack / "tasks.jsonl").read_text())
    (pack / "tasks.jsonl").write_text(json.dumps({**row, "environment": {"image": IMAGE}}) + "\n")
    [task] = compile_benchmark_pack(load_benchmark_pack(pack / "manifest.yaml", pack / "tasks.jsonl"))
    verifier, store = RepoPatchVerifier(), CandidateStore(directory / "store")

    def verdict(sandbox: Sandbox, changes: Mapping[str, str]) -> VerificationResult:
        return anyio.run(partial(repositories.judge, verifier, task, repository, changes, sandbox, store))

    return verdict


@pytest.mark.parametrize("runner", ["pytest", "unittest"] if ALL else ["unittest"])
def test_honest_fix_passes_and_a_wrong_one_fails(sandbox: Imaged, courts: Any, runner: str) -> None:
    right = courts[runner](sandbox.real, ATTACKED[runner].fix)
    assert right.passed, right.stderr
    assert not courts[runner](sandbox.real, ATTACKED[runner].wrong).passed
    assert own_containers() == []


@pytest.mark.parametrize(("runner", "cheat"), REPOSITORY_CHEATS)
def test_no_cheating_patch_passes(sandbox: Imaged, courts: Any, runner: str, cheat: PatchCheat) -> None:
    assert not courts[runner](sandbox.real, cheat.changes(ATTACKED[runner])).passed
