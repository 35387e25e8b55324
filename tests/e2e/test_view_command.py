"""`securebench view` as a command: it starts at once, ends cleanly, says what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.e2e.workbench import question, securebench
from tests.viewing import viewer

from securebench.reports.view.library import run_id
from securebench.testing.synthetic_run import SyntheticRun, write_run


def test_it_starts_in_a_second_of_processor_time_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    write_run(tmp_path / "run", SyntheticRun(tasks=4))
    times = []
    for _ in range(8):
        before = os.times()
        with viewer(tmp_path) as shown:
            assert shown.ask().status == 200
        assert shown.process.returncode == 130
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
        if times[-1] < 1:
            break
    assert min(times) < 1, times


def test_ctrl_c_says_a_word_and_no_more(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "securebench", "view", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err


def test_an_empty_directory_is_shown_as_such(tmp_path: Path) -> None:
    with viewer(tmp_path) as shown:
        assert b"There is no run here yet" in shown.ask().body


def test_a_taken_port_and_a_missing_directory_are_named(tmp_path: Path) -> None:
    with viewer(tmp_path) as shown:
        done = securebench("view", tmp_path, "--port", str(shown.port))
    assert done.code == 2
    assert f"port {shown.port} of this machine cannot be used" in done.err
    done = securebench("view", tmp_path / "nowhere")
    assert (done.code, "no such directory" in done.err) == (2, True)


def test_a_real_run_is_followed_to_its_end(bench: Any) -> None:
    made = bench([question(number) for number in range(5)], "sleep 1.5; echo 42", run={"max_workers": 1})
    argv = [sys.executable, "-m", "securebench", "run", "--config", str(made.config), "--quiet"]
    with viewer(made.directory) as shown, subprocess.Popen(argv, stdout=subprocess.DEVNULL) as running:
        while not (made.output / "events.jsonl").exists():
            assert running.poll() is None
            time.sleep(0.05)
        told = shown.ask(f"run/{run_id('out')}/events").body.decode()
        assert running.wait(120) == 0
        states = [json.loads(line.removeprefix("data: ")) for line in told.splitlines() if line]
        assert shown.ask(f"run/{run_id('out')}/report").status == 200
    done = [state["done"] for state in states]
    assert done == sorted(done)
    assert len(set(done)) > 2, "it was told while it ran"
    assert (states[-1]["finished"], states[-1]["statuses"], states[-1]["planned"]) == (True, {"passed": 5}, 5)


def test_runs_that_have_nothing_in_common_are_not_compared(tmp_path: Path) -> None:
    write_run(tmp_path / "one", SyntheticRun(run_id="one", tasks=4))
    write_run(tmp_path / "two", SyntheticRun(run_id="two", tasks=4, seed=2))
    with viewer(tmp_path) as shown:
        both = shown.ask(f"compare/{run_id('one')}/{run_id('two')}")
        assert both.status == 200
        assert b"one" in both.body
        (tmp_path / "two/plan.json").write_text("{}")
        answer = shown.ask(f"compare/{run_id('one')}/{run_id('two')}")
        assert answer.status == 404
        assert b"not a plan of ours" in answer.body
