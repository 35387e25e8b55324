"""Task directories of Harbor and Terminal-Bench, imported and run without Docker, on an imported root file system."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.harbor_tasks import CHEATS, harbor, lay, terminal_bench
from tests.rootfs import make_root

BASE = "tasks/shell:1"
TOOLS = ("bash", "sh", "cat", "ls", "readlink", "env", "rm", "wc", "mkdir", "cp", "tee", "ln", "chmod", "dirname")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Where images are kept; sandboxes run as another user, so not where pytest keeps its files."""
    need_bubblewrap()
    directory = Path(tempfile.mkdtemp(prefix="securebench-test-"))
    directory.chmod(0o755)
    root = make_root(directory / "root", TOOLS)
    os.environ["SECUREBENCH_HOME"] = str(directory / "home")
    try:
        assert securebench("image", "import", f"dir:{root}", "--name", BASE).code == 0
        yield directory
    finally:
        del os.environ["SECUREBENCH_HOME"]
        subprocess.run(["chmod", "-R", "u+w", directory], check=False)
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def pack(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("harbor")
    lay(tmp_path / "tasks/sum", harbor(BASE))
    lay(tmp_path / "tasks/double", terminal_bench(BASE))
    done = securebench("import", "harbor", tmp_path / "tasks", "-o", tmp_path / "pack", "--json")
    assert (done.code, done.json["written"]) == (0, 2), (done.out, done.err)
    assert [note["reason"][:60] for note in done.json["notes"]] == [
        "its Dockerfile copies tests or solution to where agents are;"
    ]
    return tmp_path / "pack"


def _run(pack: Path, name: str, command: str) -> list[dict[str, Any]]:
    config = pack.parent / f"{name}.yaml"
    config.write_text(
        json.dumps(
            {
                "schema_version": "0.3",
                "run": {"id": name, "output_dir": str(pack.parent / name)},
                "benchmark": {"manifest": str(pack / "manifest.yaml"), "tasks": str(pack / "tasks.jsonl")},
                "harness": {"type": "command", "config": {"command": ["bash", "-c", command]}},
            }
        )
    )
    done = securebench("run", "--config", config, "--json")
    assert done.code == 0, (done.out, done.err)
    return [json.loads(line) for line in (pack.parent / name / "candidates.jsonl").read_text().splitlines()]


def test_solutions_pass_doing_nothing_and_cheats_do_not(pack: Path) -> None:
    done = securebench("validate", pack, "--json")
    assert (done.code, done.json["trials"], done.json["rows_without_reference"]) == (0, 4, []), done.out
    honest = "echo 100 > total.txt; printf '#!/bin/sh\\necho $((2 * $1))\\n' > double.sh; chmod +x double.sh"
    assert [record["passed"] for record in _run(pack, "honest", honest)] == [True, True]
    together = "; ".join(cheat for name, cheat in CHEATS.items() if name != "link")
    for name, cheat in (("together", together), ("link", CHEATS["link"])):
        records = _run(pack, name, cheat)
        assert [(record["passed"], record["failure_reason"]) for record in records] == [(False, "tests_failed")] * 2
        assert {record["assurance"] for record in records} == {"isolated"}


def test_the_cheats_do_fool_who_runs_tests_where_the_agent_was(tmp_path: Path) -> None:
    lay(tmp_path / "tests", {"test_outputs.py": "def test_it():\n    assert False\n"})
    subprocess.run(["bash", "-c", CHEATS["runner"]], cwd=lay(tmp_path / "app", {"x": ""}), check=True)
    argv = [sys.executable, "-m", "pytest", str(tmp_path / "tests/test_outputs.py")]
    assert subprocess.run(argv, cwd=tmp_path / "app", capture_output=True, check=False).returncode == 0


def test_agents_see_what_the_dockerfile_copies_and_nothing_of_tests_or_solution(pack: Path) -> None:
    records = _run(pack, "look", "ls -R . / 2>/dev/null; cat notes.txt bin/count.sh 2>/dev/null; ./bin/count.sh; true")
    printed = "".join(record["producer_stdout"] for record in records)
    assert "sales.csv" in printed
    assert "Arguments are whole numbers." in printed
    assert "\n4\n" in printed
    for hidden in ("expected.json", "test_outputs", "solution.sh", "solve.sh", "run-tests.sh", "task.yaml"):
        assert hidden not in printed
