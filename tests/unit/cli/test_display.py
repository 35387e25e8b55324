"""The displays of a run: bounded on a small terminal, one line an attempt in a log."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from typing import Any

import pytest
from rich.console import Console

from securebench.cli._display import open_display
from securebench.cli._live import render
from securebench.progress import Event, ProgressEvent
from securebench.run_state import RunState


def event(kind: Event, task: str | None = None, attempt: int = 1, **data: Any) -> ProgressEvent:
    return ProgressEvent(kind, task, None if task is None else attempt, data)


def start(planned: int, before: int = 0) -> ProgressEvent:
    return event(Event.RUN_START, run_id="r", planned=planned, done_before=before)


def done(task: str, status: str = "passed", **more: Any) -> ProgressEvent:
    return event(Event.TASK_DONE, task, status=status, failure_reason=None, seconds=1.25, **more)


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def busy(workers: int = 64) -> tuple[RunState, Clock]:
    clock = Clock()
    state = RunState(clock)
    state.see(start(1000, 100))
    for number in range(workers):
        clock.time = float(number)
        state.see(event(Event.TASK_START, f"task-{number}-with-a-rather-long-name-" + "x" * number))
        state.see(event(Event.PRODUCER_START, f"task-{number}-with-a-rather-long-name-" + "x" * number))
    return state, clock


def lines_of(state: RunState, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(render(state, width, height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize("width", [20, 40, 80, 250])
@pytest.mark.parametrize("height", [1, 2, 5, 10, 20, 60])
def test_display_of_64_workers_fits_every_terminal(width: int, height: int) -> None:
    state, _ = busy()
    lines = lines_of(state, width, height)
    assert len(lines) <= max(1, height - 2)
    assert all(len(line) <= width for line in lines)


def test_longest_running_come_first_with_their_phase() -> None:
    state, clock = busy()
    clock.time = 100.0
    first = next(iter(state.running))[0]
    state.see(event(Event.PRODUCER_DONE, first))
    state.see(event(Event.VERIFIER_START, first))
    lines = lines_of(state, 80, 20)
    assert "100/1000" in lines[0]
    assert lines[1] == "64 under way: producing 63, verifying 1"
    assert re.fullmatch(r"  task-0-\S+ #1  verifying  1 min 40 s", lines[2])
    assert "task-1-" in lines[3]
    assert len(lines) == 14


def test_rate_eta_tokens_and_cost_are_of_this_run() -> None:
    clock = Clock()
    state = RunState(clock)
    clock.time = 500.0  # preparation
    state.see(start(100, 50))
    assert (state.rate(), state.left()) == (None, None)
    for number in range(10):
        clock.time += 2
        state.see(event(Event.TASK_START, f"t{number}"))
        state.see(done(f"t{number}", "passed" if number % 2 else "error", tokens=1500, cost_usd=0.01))
    assert state.rate() == pytest.approx(0.5)
    assert state.left() == pytest.approx(80)
    [line] = lines_of(state, 120, 20)
    for words in ("60/100", "passed 5", "error 5", "30.0/min", "ETA 1 min 20 s", "15.0 k tokens", "0.10 USD"):
        assert words in line
    assert not state.running


def test_rate_follows_a_change_of_pace() -> None:
    clock = Clock()
    state = RunState(clock)
    state.see(start(10_000))
    for number in range(500):
        clock.time += 1 if number < 400 else 10
        state.see(done(f"t{number}"))
    assert state.rate() == pytest.approx(0.1, rel=0.05)


def test_control_characters_in_an_id_do_not_reach_the_terminal() -> None:
    state = RunState(Clock())
    state.see(event(Event.TASK_START, "evil\x1b[2Jid"))
    assert "\x1b[2J" not in "\n".join(lines_of(state, 80, 20))


def test_drawing_while_events_come_in_never_fails() -> None:
    state, _ = busy()
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            state.see(event(Event.TASK_START, f"n{number}"))
            state.see(done(f"n{number}"))
            number += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(100):
            lines_of(state, 80, 20)
    finally:
        stop.set()
        worker.join()


def test_log_has_one_line_per_finished_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    with open_display("plain", show_agent_output=False) as show:
        for one in (
            start(3, 1),
            event(Event.TASK_START, "a"),
            event(Event.PRODUCER_START, "a"),
            event(Event.VERIFIER_DONE, "a", status="passed"),
            done("a"),
            event(Event.RECORD_WRITTEN, "a"),
            event(Event.TASK_DONE, "b", 2, status="failed", failure_reason="wrong_answer", seconds=2.0),
        ):
            show(one)
    assert capsys.readouterr().err.splitlines() == [
        "run r: 3 attempts, 1 done before",
        "[2/3] a #1: passed 1.25 s",
        "[3/3] b #2: failed (wrong_answer) 2.00 s",
    ]


PROGRAM = """
import time
from securebench.cli._display import open_display
from securebench.progress import Event, ProgressEvent
with open_display("auto", False) as show:
    show(ProgressEvent(Event.RUN_START, data={"run_id": "r", "planned": 200, "done_before": 0}))
    for n in range(200):
        show(ProgressEvent(Event.TASK_START, f"task-{n}", 1))
        show(ProgressEvent(Event.PRODUCER_START, f"task-{n}", 1))
        if n >= 64:
            data = {"status": "passed", "failure_reason": None, "seconds": 1.0}
            show(ProgressEvent(Event.TASK_DONE, f"task-{n - 64}", 1, data))
        time.sleep(0.008)
"""


class Screen:
    """As much of a terminal as the display uses. `scrolled` counts lines pushed off the top."""

    def __init__(self, rows: int) -> None:
        self.lines = [""] * rows
        self.row = self.column = self.scrolled = self.frames = 0

    def feed(self, text: str) -> None:
        for token in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|.", text, re.DOTALL):
            if token == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines = [*self.lines[1:], ""]
                    self.row -= 1
                    self.scrolled += 1
            elif token == "\r":
                self.column = 0
            elif token.startswith("\x1b["):
                self._control(token)
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + token + line[self.column + 1 :]
                self.column += 1
                assert self.column <= 80, "a line wraps"

    def _control(self, token: str) -> None:
        if token.endswith("A"):
            self.row = max(0, self.row - int(token[2:-1] or 1))
        elif token.endswith("K"):
            self.lines[self.row] = ""
            self.frames += 1


def test_real_terminal_of_20_rows_is_never_scrolled_and_left_clean() -> None:
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    environment |= {"TERM": "xterm-256color", "TTY_COMPATIBLE": "1"}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=terminal, stdout=terminal, env=environment)
    os.close(terminal)
    written = b""
    try:
        while chunk := os.read(controller, 65536):
            written += chunk
    except OSError:
        pass  # the terminal's other end is closed
    os.close(controller)
    assert process.wait(30) == 0, written[-2000:]
    screen = Screen(20)
    text = written.decode().replace("\r\n", "\n\r")
    assert "64 under way" in text
    screen.feed(text)
    assert screen.scrolled == 0
    assert screen.frames > 20
    assert not any(line.strip() for line in screen.lines)
    assert len(written) < 200_000  # a few frames a second, whatever the number of events
