"""Whole runs through the real command line, in real sandboxes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CLI = [sys.executable, "-m", "securebench"]


def need_bubblewrap() -> None:
    if shutil.which("bwrap") is None:
        message = "bubblewrap is not installed (apt-get install bubblewrap)"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(message)
        pytest.skip(message)


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def securebench(*args: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> Finished:
    """Run the command line to its end."""
    done = subprocess.run(
        [*CLI, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=cwd,
        env=os.environ | (env or {}),
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Workbench:
    """A pack and a tester file in a temporary directory."""

    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "tester.yaml"

    @property
    def output(self) -> Path:
        return self.directory / "out"

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / "candidates.jsonl").read_bytes().splitlines()]

    def run(self, *args: str | Path) -> Finished:
        return securebench("run", "--config", self.config, "--json", *args)


def question(number: int | str, **more: Any) -> dict[str, Any]:
    """A task whose right answer is 42."""
    row = {"id": f"t{number}", "family": "short_answer", "input": {"question": "6 * 7?"}}
    return row | {"eval": {"accepted_answers": [42]}} | more
