"""Class L through the command line: what the attack suite plays in single sandboxes and small runs leaves nothing on the
host of a whole run either."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from tests.e2e.workbench import question, securebench


def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_the_run(bench: Any) -> None:
    work = bench([question(1)], "(setsid sleep 600 &); echo 42")
    began = time.monotonic()
    assert work.run().json["passed"] == 1
    assert time.monotonic() - began < 300


def test_nothing_is_left_on_the_host(bench: Any, tmp_path: Path) -> None:
    seconds = f"77.{time.time_ns()}"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o777)
    work = bench([question(number) for number in range(3)], f"(setsid sleep {seconds} &); touch /tmp/left; echo 42")
    done = securebench("run", "--config", work.config, "--quiet", env={"TMPDIR": str(temporary)})
    assert done.code == 0, done.err
    assert list(temporary.iterdir()) == []
    assert not Path("/tmp/left").exists()
    listing = subprocess.run(["pgrep", "-f", f"^sleep {seconds}"], capture_output=True, text=True, check=False)
    assert listing.stdout == ""
