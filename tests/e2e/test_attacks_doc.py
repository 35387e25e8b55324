"""docs/attacks.md is made from the catalogue; the attack of docs/adding-attacks.md works from a package of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.workbench import Finished, need_bubblewrap, securebench

ROOT = Path(__file__).resolve().parents[2]
BACKEND = """
from securebench.sandboxes.bubblewrap import BubblewrapSandbox


class MySandbox(BubblewrapSandbox):
    name = "mine"
"""
OPEN = """
from dataclasses import replace

from securebench.sandboxes.host import HostSandbox


class MySandbox(HostSandbox):
    name = "mine"

    def open(self, spec):
        return super().open(replace(spec, require=frozenset()))
"""


def test_the_document_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "attacks_doc.py", "--check"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A distribution as an installer leaves it: a package, and beside it what is known of it."""
    need_bubblewrap()
    text = (ROOT / "docs" / "adding-attacks.md").read_text()
    attack, test = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    points = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert points is not None
    entries = points[1].replace('[project.entry-points."', "[").replace('"]', "]").replace('"', "")
    files = {
        "my_package/__init__.py": "",
        "my_package/operator_files.py": attack,
        "my_package/sandbox.py": BACKEND,
        "test_mine.py": test,
        "my_package-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n",
        "my_package-1.0.dist-info/entry_points.txt": entries,
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def _played(package: Path, *arguments: str) -> Finished:
    return securebench("audit", "--full", "--only", "X01", *arguments, env={"PYTHONPATH": str(package)})


def test_an_attack_and_a_backend_of_another_package_are_played(package: Path) -> None:
    done = _played(package, "--backend", "mine", "--json", "--html", str(package / "page.html"))
    assert done.code == 0, done.out + done.err
    (row,) = done.json["rows"]
    assert (row["attack"], row["backend"], row["verdict"]) == ("X01/by-its-path", "mine", "held")
    assert "Files of the operator" in (package / "page.html").read_text()


def test_a_backend_that_keeps_nothing_out_is_not_played_on(package: Path) -> None:
    (package / "my_package" / "sandbox.py").write_text(OPEN)
    done = _played(package, "--backend", "mine")
    assert done.code == 3
    assert "mine cannot guarantee" in done.err


def test_the_suite_runs_from_the_tests_of_another_package(package: Path) -> None:
    def tested() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
        env = os.environ | {"PYTHONPATH": str(package)}
        return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=package, env=env, check=False)

    done = tested()
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    (package / "my_package" / "sandbox.py").write_text(OPEN)
    done = tested()
    assert done.returncode == 1
    assert "DidNotHold: X01/by-its-path on mine: succeeded" in done.stdout
