"""What docs/inspect.md and docs/convert.md show works as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.e2e.workbench import securebench

DOCS = Path(__file__).parents[2] / "docs"
INSPECT, CONVERT = (DOCS / "inspect.md").read_text(), (DOCS / "convert.md").read_text()


def test_python_of_the_page_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", INSPECT, re.DOTALL)
    assert securebench("init", tmp_path / "my-pack").code == 0
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr


def test_commands_of_inspect_name_what_is_registered() -> None:
    named = set(re.findall(r"securebench/(\w+)", INSPECT)) - {"inspect_adapter"}
    assert named == {"pack_task", "pack_scorer"}
    registered = import_module("importlib.metadata").entry_points(group="inspect_ai", name="securebench")
    assert [point.value for point in registered] == ["securebench.inspect_adapter"]


@pytest.mark.parametrize("line", [line for line in CONVERT.splitlines() if line.startswith("$ securebench ")])
def test_command_can_be_typed(line: str) -> None:
    _, _, name, *args = shlex.split(line)
    given = import_module(f"securebench.cli.{name}").command.make_context(name, args).params
    assert given["format_"] == "harbor"
