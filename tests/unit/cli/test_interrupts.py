"""Ctrl-C at the moments at which Python or a library would lose it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LOST_IN_DEL = """
import signal, sys, time
from securebench.cli._interrupts import deliver_lost_interrupts
if sys.argv[1] == "delivered":
    deliver_lost_interrupts()
class Held:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        for _ in range(1000): pass
try:
    Held()
    for _ in range(100): time.sleep(0.02)
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(("way", "said"), [("delivered", "interrupted"), ("lost", "went on")])
def test_an_interrupt_that_python_drops_comes_again(way: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST_IN_DEL, way], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == said
    assert ("Traceback" in done.stderr) == (way == "lost")


INTERRUPTED_IN_EXEC = """
import signal, sys
from securebench.cli._interrupts import end_interrupted
try:
    exec("signal.raise_signal(signal.SIGINT)\\nfor _ in range(1000): pass")
except KeyboardInterrupt:
    end_interrupted() if sys.argv[1] == "ours" else sys.exit(130)
"""


@pytest.mark.parametrize(("way", "code"), [("ours", 130), ("plain", -signal.SIGINT)])
def test_an_interrupt_out_of_executed_text_ends_with_an_exit_code(tmp_path: Path, way: str, code: int) -> None:
    (tmp_path / "ended.py").write_text(INTERRUPTED_IN_EXEC)
    argv = [sys.executable, "-m", "ended", way]
    done = subprocess.run(argv, check=False, capture_output=True, timeout=60, cwd=tmp_path)
    assert done.returncode == code


def test_what_an_interrupt_left_half_made_does_not_complain() -> None:
    code = (
        "from securebench.cli._interrupts import end_interrupted\n"
        "class Half:\n    def __del__(self): raise AttributeError('never set')\nhalf = Half()\nend_interrupted()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")


def test_other_errors_that_cannot_be_raised_are_still_told() -> None:
    code = (
        "from securebench.cli._interrupts import deliver_lost_interrupts\ndeliver_lost_interrupts()\n"
        "class Held:\n    def __del__(self): raise ValueError('of ours')\nHeld()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert "ValueError: of ours" in done.stderr


def test_an_interrupt_while_the_command_line_loads_ends_it_without_a_word() -> None:
    code = (
        "import sys, time, types\n"
        "class Slow:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'securebench.cli': print('loading', flush=True); time.sleep(60)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from securebench.__main__ import main\nmain()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (-signal.SIGINT, b"", b"")
