"""What docs/grade.md shows works as it stands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.workbench import securebench

from securebench.harnesses.samples import read_sample

PAGE = (Path(__file__).parents[2] / "docs" / "grade.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("program", blocks("python"))
def test_python_of_the_page_runs(tmp_path: Path, program: str) -> None:
    assert securebench("init", tmp_path / "my-pack").code == 0
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr


def test_lines_of_the_page_are_samples() -> None:
    lines = blocks("json")[0].splitlines()
    assert [read_sample(json.loads(line)).key for line in lines] == ["completion", "solution", "model_patch"]
