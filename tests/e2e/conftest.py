"""Whole runs through the real command line, in real sandboxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import Workbench, need_bubblewrap


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    """`bench(rows, command, **harness_config)` writes a pack and a tester file for the command harness."""
    need_bubblewrap()

    def make(
        rows: list[dict[str, Any]], command: str | list[str], run: dict[str, Any] | None = None, **config: Any
    ) -> Workbench:
        (tmp_path / "manifest.yaml").write_text("id: e2e\nversion: 1\n")
        (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        tester = {
            "schema_version": "0.3",
            "run": {"id": "e2e-run", "output_dir": "out", **(run or {})},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {"type": "command", "config": {"command": command, **config}},
        }
        (tmp_path / "tester.yaml").write_text(json.dumps(tester))
        return Workbench(tmp_path)

    return make
