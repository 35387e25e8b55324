"""What a candidate can do from the sandbox in which a checker has it executed."""

from __future__ import annotations

from securebench.audit.attacks.c_state.tasks import HONEST, SUM
from securebench.audit.plays.terminal import Outlive, Solve, TerminalTask
from securebench.audit.plays.terminal_files import laying
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.terminal import CarelessRelay, KeptSandbox

CALL = TerminalTask(
    "from securebench import worker\n\ndef test_it():\n    assert worker.call('lib.py', 'count') == 4217\n",
    source="pytest",
)
TWIN = Solve(CALL, laying(("lib.py", "def count():\n    return 4217\n")))
SAYS = """
import os
for number in (1, *range(3, 20)):
    try:
        os.write(number, {reply})
    except OSError:
        pass
os._exit(0)
"""
"""Says something in the name of the program that calls it, and ends that."""
MARKER = "securebench-suite-that-lives-on"
LIVES_ON = f"""
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for number in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        os.execv(sys.executable, [{MARKER!r}, "-c", "import time; time.sleep(15)"])
    os._exit(0)
"""
STAYS = laying(("sum.py", LIVES_ON + "print(sum(map(int, sys.argv[1:])))\n")) + LIVES_ON


def _with(value: str) -> str:
    """A reply of the right form."""
    return "b'{\"value\": ' + " + value + " + b', \"error\": null}'"


def _reply(name: str, how: str, reply: str) -> Attack:
    agent = laying(("lib.py", SAYS.format(reply=reply)))
    return Attack("C51", name, how, Solve(CALL, agent), TWIN, CarelessRelay(agent))


ATTACKS = (
    _reply("no-reply", "It says something that is no reply at all.", "b'\\x00[' * 1000"),
    _reply(
        "unwritable-text",
        "A reply holds half a character, which can be read and not be written.",
        _with("b'\"\\\\ud800\"'"),
    ),
    _reply("deep-reply", "A reply is nested deeper than a parser may go.", _with("b'[' * 30000 + b']' * 30000")),
    _reply("long-number", "A reply holds a number that takes for ever to convert.", _with("b'9' * 60000")),
    Attack(
        "C52",
        "processes-that-stay",
        "Agent and candidate program each leave a process that ignores signals.",
        Outlive(SUM, STAYS, MARKER),
        HONEST[SUM],
        KeptSandbox(STAYS, MARKER),
    ),
)
