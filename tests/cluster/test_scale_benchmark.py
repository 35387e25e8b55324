"""benchmarks/scale.py still fits what it measures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "scale.py"


def test_the_simulation_records_every_attempt(tmp_path: Path) -> None:
    argv = [sys.executable, SCRIPT, "--only", "simulation", "--nodes", "20", "--attempts", "300"]
    done = subprocess.run(
        [*argv, "--json", tmp_path / "out.json"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "300 attempts:" in done.stdout
    assert json.loads((tmp_path / "out.json").read_text())["simulation"]
