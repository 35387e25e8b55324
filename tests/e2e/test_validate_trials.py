"""`securebench validate` on rows that run code: base must fail, references must pass, mutants must fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.repositories.judging import as_patch
from tests.attacks.repositories.repositories import REPOSITORIES
from tests.attacks.terminal.judging import lay
from tests.e2e.workbench import need_bubblewrap, securebench

REPOSITORY = next(r for r in REPOSITORIES if r.name == "wallet")
ADD = "def add(a, b):\n    return a + b\n"


def code_row(**evaluation: Any) -> dict[str, Any]:
    tests = {"source": "inline", "code": "def check(candidate):\n    assert candidate(2, 3) == 5\n"}
    return {
        "id": "add",
        "family": "code_completion",
        "input": {"prompt": "def add(a, b):\n", "language": "python", "entry_point": "add"},
        "eval": {"tests": tests, "reference_solution": ADD, **evaluation},
    }


def repo_row() -> dict[str, Any]:
    tests = {
        "source": REPOSITORY.runner,
        "fail_to_pass": REPOSITORY.fail_to_pass,
        "pass_to_pass": REPOSITORY.pass_to_pass,
        "files": [{"path": f"suite/{path}", "mount": path} for path in REPOSITORY.tests],
    }
    return {
        "id": "wallet",
        "family": "repo_patch",
        "input": {"repo": "repo", "base_commit": "main", "instructions": "Fix it."},
        "assets": [{"path": "repo"}],
        "eval": {
            "tests": tests,
            "gold_patch": as_patch(REPOSITORY.files, REPOSITORY.fix),
            "mutants": [as_patch(REPOSITORY.files, REPOSITORY.wrong)],
        },
    }


def terminal_row(checker: str, **evaluation: Any) -> dict[str, Any]:
    return {
        "id": "answer",
        "family": "terminal_task",
        "input": {"instructions": "Write the answer."},
        "environment": {"workdir": "/app"},
        "eval": {
            "checker": {"source": "pytest", "path": checker},
            "reference_workspace": {"path": "solution"},
            "mutants": [{"path": "wrong"}],
            **evaluation,
        },
    }


def pack(directory: Path, *rows: dict[str, Any]) -> Path:
    need_bubblewrap()
    lay(directory / "assets/repo", REPOSITORY.files)
    lay(directory / "hidden/suite", REPOSITORY.tests)
    strict = "def test_it():\n    assert open('/app/answer.txt').read() == '42'\n"
    lay(directory / "hidden", {"strict.py": strict, "weak.py": "def test_it():\n    pass\n"})
    lay(directory / "hidden", {"solution/answer.txt": "42", "wrong/answer.txt": "41"})
    (directory / "manifest.yaml").write_text("id: trials\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def test_sound_rows_of_every_kind(tmp_path: Path) -> None:
    rows = (
        code_row(mutants=["def add(a, b):\n    return 5\n".replace("5", "a")]),
        repo_row(),
        terminal_row("strict.py"),
    )
    done = securebench("validate", pack(tmp_path, *rows), "--json")
    assert done.code == 0, (done.out, done.err)
    assert (done.json["trials"], done.json["broken_trials"], done.json["rows_without_reference"]) == (9, [], [])


def scripted_row(script: str) -> dict[str, Any]:
    row = terminal_row("strict.py", reference_script={"path": script})
    del row["eval"]["reference_workspace"]
    return row


@pytest.mark.parametrize("script", ["script", "script/solve.sh"])
def test_reference_may_be_a_script_that_makes_the_workspace(tmp_path: Path, script: str) -> None:
    whole = {"solve.sh": '#!/bin/sh\nprintf %s "$((6 * 7))" > answer.txt\n'}
    lay(tmp_path / "hidden/script", whole)
    done = securebench("validate", pack(tmp_path, scripted_row(script)), "--json")
    assert (done.code, done.json["trials"]) == (0, 3), (done.out, done.err)


def test_script_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    lay(tmp_path / "hidden/script", {"solve.sh": "echo no such tool >&2\nexit 3\n", "note": ""})
    done = securebench("validate", pack(tmp_path, scripted_row("script")))
    assert (done.code, "reference_script must pass, but was failed" in done.out) == (1, True), done.out
    assert "exit code 3: no such tool" in done.out


def test_reference_that_is_a_directory_without_a_script_is_told(tmp_path: Path) -> None:
    done = securebench("validate", pack(tmp_path, scripted_row("solution")))
    assert (done.code, "a directory without solve.sh" in done.out) == (1, True), done.out


def test_canonical_solution_may_be_the_rest_of_the_prompt(tmp_path: Path) -> None:
    row = code_row(canonical_solution="    return a + b\n")
    del row["eval"]["reference_solution"]
    done = securebench("validate", pack(tmp_path, row), "--json")
    assert done.code == 0, done.out


@pytest.mark.parametrize(
    ("row", "trial", "seen"),
    [
        (code_row(reference_solution="def add(a, b):\n    return 0\n"), "reference_solution", "failed"),
        (code_row(mutants=["def add(a, b):\n    return 5\n"]), "mutant 1", "passed"),
        (terminal_row("weak.py"), "base", "passed"),
        (terminal_row("strict.py", mutants=[{"path": "solution"}]), "mutant 1", "passed"),
    ],
    ids=["reference fails", "mutant passes", "checker passes nothing", "checker passes a mutant"],
)
def test_row_that_is_not_worth_trusting_is_named(tmp_path: Path, row: dict[str, Any], trial: str, seen: str) -> None:
    done = securebench("validate", pack(tmp_path, row))
    assert done.code == 1, (done.out, done.err)
    assert f"tasks.jsonl:1: task {row['id']}: {trial} must" in done.out
    assert f"but was {seen}" in done.out


def test_no_run_looks_at_the_files_only(tmp_path: Path) -> None:
    assert securebench("validate", pack(tmp_path, terminal_row("weak.py")), "--no-run").code == 0


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ({"python": "python-that-is-not-there"}, "the suite did not come to its end: tests.python cannot be started: "),
        ({"source": "command", "command": ["sh", "-c", "echo no make here >&2; exit 2"]}, "exit code 2: no make here"),
    ],
)
def test_gold_patch_whose_tests_cannot_run_is_told_with_why(tmp_path: Path, tests: dict[str, Any], why: str) -> None:
    row = repo_row()
    if "source" in tests:
        del row["eval"]["tests"]
    row["eval"]["tests"] = row["eval"].get("tests", {}) | tests
    done = securebench("validate", pack(tmp_path, row))
    assert done.code == 1
    assert f"here: {why}" in done.out
    assert "python-that-is-not-there" not in done.out  # a hidden value of the row
