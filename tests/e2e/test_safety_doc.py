"""docs/safety.md is made from the data the audit uses, and is up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "safety_table.py", "--check"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_the_document_says_must_fail_does_fail(tmp_path: Path) -> None:
    from tests.e2e.workbench import need_bubblewrap, securebench

    need_bubblewrap()
    text = (ROOT / "docs" / "safety.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("$ echo 'import subprocess"))
    program = line.split("'")[1]
    (tmp_path / "try.py").write_text(program)
    done = securebench("exec", tmp_path / "try.py")
    assert done.code == 1
    assert "is blocked by the guard (process)" in done.err
