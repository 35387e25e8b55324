"""One guarded child, run for real."""

import compileall
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PYTHON = os.environ.get("SECUREBENCH_GUARD_PYTHON", sys.executable)
GUARD = Path(__file__).parents[3] / "src/securebench/guard"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str
    installed: list[str]
    blocked: list[dict]


class Guarded:
    def __init__(self, base: Path, bootstrap: Path) -> None:
        self.base = base
        self.bootstrap = bootstrap
        self.root = base / "root"
        self.program = base / "submitted" / "main.py"
        self.report = base / "report.jsonl"
        self.root.mkdir()
        self.program.parent.mkdir()

    def __call__(self, text: str, files: dict[str, str] | None = None, stdin: str = "", **params) -> Run:
        self.program.write_text(text, encoding="utf-8")
        for name, content in (files or {}).items():
            path = self.program.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        self.report.unlink(missing_ok=True)
        values = {"program": str(self.program), "root": str(self.root), "report": str(self.report), "seal": False}
        values |= {"require": []} | params
        done = self.start(json.dumps(values), stdin=stdin)
        lines = self.report.read_text().splitlines() if self.report.exists() else []
        parsed = [json.loads(line) for line in lines]
        installed = parsed[0]["installed"] if parsed else []
        return Run(done.returncode, done.stdout, done.stderr, installed, parsed[1:])

    def start(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess:
        env = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
        command = [PYTHON, "-I", "-B", str(self.bootstrap), *args]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=120, env=env, cwd="/", check=False
        )


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the guard with its caches, as an installed one has them: `-B` writes none."""
    copy = tmp_path_factory.mktemp("guard") / "guard"
    shutil.copytree(GUARD, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert compileall.compile_dir(copy, quiet=1)
    return copy / "bootstrap.py"


@pytest.fixture
def guarded(tmp_path: Path, bootstrap: Path) -> Guarded:
    return Guarded(tmp_path, bootstrap)
