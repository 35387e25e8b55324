"""Class L, end to end: bombs and attempts on the engine are the candidate's failure, and the next task is unaffected.

Each bomb has its positive control: with the limit it runs into lifted, the same program gets its answer out."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import question, securebench

PYTHON = "/usr/bin/python3"
ANSWER = "\nprint('Answer: 42')"
SMALL = {"resources": {"memory": "128m", "pids": 24, "disk": "16m"}, "timeout_seconds": 20}
LARGE = {"resources": {"memory": "1g", "pids": 400, "disk": "128m"}, "timeout_seconds": 60}

BOMBS = {
    "processes": "import os, time\nchildren = 0\nfor _ in range(200):\n    if os.fork() == 0: time.sleep(3); os._exit(0)",
    "memory": "data = bytearray(400 * 2**20)",
    "shared memory": "import os, mmap\nmap = mmap.mmap(-1, 400 * 2**20)\nfor i in range(0, len(map), 4096): map[i] = 1",
    "memory of many": (
        "import os, time\npids = []\nfor _ in range(5):\n    pid = os.fork()\n"
        "    if pid == 0: data = bytearray(60 * 2**20); time.sleep(1); os._exit(0)\n    pids.append(pid)\n"
        "codes = [os.waitpid(pid, 0)[1] for pid in pids]\nassert not any(codes)"
    ),
    "disk": "open('fill', 'wb').write(bytes(64 * 2**20))",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_fails_its_own_task_and_no_other(bench: Any, bomb: str) -> None:
    rows = [question("bomb", environment=SMALL), question("after", environment=SMALL)]
    program = f"import json\nif json.load(open('task.json'))['task_id'] == 'tbomb':\n    exec({BOMBS[bomb]!r})" + ANSWER
    work = bench(rows, [PYTHON, "-c", program])
    done = work.run("--workers", "1")
    assert done.code == 0, done.err
    records = {record["task_id"]: record for record in work.records()}
    assert records["tbomb"]["verification_status"] == "failed"
    assert records["tbomb"]["failure_reason"].startswith("producer_")
    assert records["tafter"]["passed"]
    assert done.json["errors"] == 0


@pytest.mark.parametrize("bomb", BOMBS)
def test_positive_control_with_the_limit_lifted_the_same_program_answers(bench: Any, bomb: str) -> None:
    work = bench([question(1, environment=LARGE)], [PYTHON, "-c", BOMBS[bomb] + ANSWER])
    done = work.run()
    assert done.json["passed"] == 1, work.records()


def test_the_engine_can_neither_be_seen_nor_signalled(bench: Any) -> None:
    program = """
import os, signal
hits = []
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        if b"py" + b"test" in open(f"/proc/{pid}/cmdline", "rb").read(): hits.append(pid)
    except OSError: pass
for pid in [os.getppid(), -1]:
    if pid > 1:
        os.kill(pid, signal.SIGKILL)
print(hits)
print("Answer: 42")
"""
    work = bench([question(1)], [PYTHON, "-c", program])
    done = work.run()
    assert done.code == 0, done.err
    [record] = work.records()
    assert record["producer_stdout"].startswith("[]"), record
    outside = subprocess.run(
        [PYTHON, "-c", program.replace("os.kill(pid, signal.SIGKILL)", "pass")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not outside.stdout.startswith("[]"), "positive control: outside, the test runner is seen"


def test_killing_everything_inside_ends_only_the_agent(bench: Any) -> None:
    work = bench([question(1), question(2)], "grep -q t2 task.json && echo 42 || kill -9 -1")
    done = work.run("--workers", "1")
    assert done.code == 0, done.err
    records = {record["task_id"]: record for record in work.records()}
    assert (records["t1"]["verification_status"], records["t2"]["verification_status"]) == ("failed", "passed")


def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_the_run(bench: Any) -> None:
    work = bench([question(1)], "(setsid sleep 600 &); echo 42")
    began = time.monotonic()
    assert work.run().json["passed"] == 1
    assert time.monotonic() - began < 30


def test_an_unreadable_workspace_is_the_candidates_failure(bench: Any) -> None:
    script = "mkdir d; echo 42 > d/answer.txt; chmod 000 d d/answer.txt 2>/dev/null; chmod 000 d; true"
    work = bench([question(1)], script, artifact_path="d/answer.txt")
    done = work.run()
    assert done.code == 0, done.err
    [record] = work.records()
    # Root may read it all the same; for everyone else it is refused. Never an error of the host's.
    expected = ("passed", None) if os.geteuid() == 0 else ("failed", "candidate_refused")
    assert (record["verification_status"], record["failure_reason"]) == expected


def test_nothing_is_left_on_the_host(bench: Any, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o777)
    work = bench([question(number) for number in range(3)], "(setsid sleep 77.5 &); touch /tmp/left; echo 42")
    done = securebench("run", "--config", work.config, "--quiet", env={"TMPDIR": str(temporary)})
    assert done.code == 0, done.err
    assert list(temporary.iterdir()) == []
    assert not Path("/tmp/left").exists()
    listing = subprocess.run(["pgrep", "-f", "^sleep 77.5"], capture_output=True, text=True, check=False)
    assert listing.stdout == ""
