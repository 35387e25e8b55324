"""Real sealed runs to tamper with: text answers, a repository, a workspace, kept evidence, checkpoints, a known key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workspaces.git_cases import write_files

from securebench import load_tester_config, run_tester_config
from securebench.engine import notary
from securebench.evidence.verify import Verification, verify_run
from securebench.records.keys import SigningKey, known_keys, load_signing_key, new_key

ROWS: list[dict[str, Any]] = [
    {
        "id": f"t{number}",
        "family": "short_answer",
        "input": {"question": "6 * 7?"},
        "eval": {"accepted_answers": [42]},
    }
    for number in range(1, 3)
] + [
    {
        "id": "t3",
        "family": "short_answer",
        "input": {"question": "6 * 7?"},
        "eval": {"accepted_answers": [42]},
        "environment": {"network": {"allowed_domains": ["allowed.test"]}},  # so that what went through is kept
    },
    {
        "id": "p1",
        "family": "repo_patch",
        "input": {"repo": "repo", "base_commit": "x", "instructions": "Fix it."},
        "eval": {"tests": {"source": "command", "command": ["true"]}},
        "assets": [{"path": "repo"}],
    },
    {
        "id": "w1",
        "family": "terminal_task",
        "input": {"instructions": "Do it."},
        "eval": {"checker": {"source": "script", "path": "check.sh"}},
    },
]
AGENT = (
    "sleep 0.1; echo 'made by the agent' > made.txt; echo x >> src/app.py; "
    "grep -q t2 task.json && echo 'Answer: 41' || echo 'Answer: 42'"
)


def make_run(
    directory: Path, keys: Path, run_id: str = "the-run", limit: int | None = None, rows: list[dict[str, Any]] = ROWS
) -> Path:
    """Run the pack for real, with a checkpoint at every turn; the run directory."""
    write_files(directory / "assets" / "repo", {"src/app.py": "print('broken')\n"})
    write_files(directory / "hidden", {"check.sh": "exit 0\n"})
    (directory / "manifest.yaml").write_text("id: tampering\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tester = {
        "schema_version": "0.3",
        "run": {"id": run_id, "output_dir": "out", "attempts": 2, "max_workers": 1},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": AGENT}},
        "records": {"key": str(keys / "maker.key")},
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notary, "CHECKPOINT_SECONDS", 0.2)
        run_tester_config(load_tester_config(directory / "tester.yaml"), limit=limit)
    return directory / "out"


def key_named(name: str, keys: Path) -> SigningKey:
    if not (keys / f"{name}.key").exists():
        new_key(name, keys)
    return load_signing_key(name, keys)


def verified(run: Path, keys: Path, expected: str | None = None) -> Verification:
    return verify_run(run, {key.id: key.name for key in known_keys(keys) if key.name == "maker"}, expected)


def edited(file: str, change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    """Rewrite the lines of a file."""

    def apply(run: Path) -> None:
        path = run / file
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return apply


def lines_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "candidates.jsonl").read_bytes().splitlines()]


def line_about(run: Path, task: str) -> int:
    return next(number for number, record in enumerate(lines_of(run), 1) if record["task_id"] == task)
