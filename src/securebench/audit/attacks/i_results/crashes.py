"""I06: whoever breaks down wants to be left out of the score, or to be asked once more. Producers in a small sandbox,
and candidates whose code breaks down while they are judged."""

from __future__ import annotations

from dataclasses import replace

from securebench.audit.plays.run import HOSTILE, Attempted, bench, candidate
from securebench.audit.plays.run_engine import function, question
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.record_counting import SMALL, OnlyAnswered, OnlyFinished

_ROOM = {"resources": {"memory": "128m", "pids": 24, "disk": "16m"}, "timeout_seconds": 20}
_SHORT = 1.5  # seconds for those whom only the clock ends

HONEST_ANSWER = Attempted(bench(question(HOSTILE, **_ROOM), "print('Answer: 42')"))
HONEST_CODE = Attempted(bench(function(HOSTILE, **_ROOM), candidate("def f(x):\n    return 2 * x\n")))

# What an agent does: how, the program, the reasons that may be given, and whether only the clock ends it.
_AGENTS: dict[str, tuple[str, str, str, bool]] = {
    "exit-code-of-the-engine": (
        "Ends with the exit code by which container tools say that they failed themselves.",
        "raise SystemExit(125)",
        "producer_failed",
        False,
    ),
    "program-not-found": (
        "Ends with the exit code of a shell that found no such program.",
        "raise SystemExit(127)",
        "producer_failed",
        False,
    ),
    "killed-by-itself": (
        "Ends itself with the signal that hosts short of memory send.",
        "import os; os.kill(os.getpid(), 9)",
        "producer_failed",
        False,
    ),
    "kill-all": (
        "Kills every process that it can see, the sandbox's first one included.",
        "import os\nfor pid in range(1, 64):\n    if pid != os.getpid():\n        try: os.kill(pid, 9)\n"
        "        except OSError: pass\nos.kill(os.getpid(), 9)",
        "producer_failed",
        False,
    ),
    "stop-all": (
        "Stops every process that it can see and then itself, so that nobody is left to report its end.",
        "import os, signal\nfor pid in range(1, 64):\n    if pid != os.getpid():\n"
        "        try: os.kill(pid, signal.SIGSTOP)\n        except OSError: pass\nos.kill(os.getpid(), signal.SIGSTOP)",
        "producer_timeout",
        True,
    ),
    "memory": (
        "Takes more memory than there is.",
        "held = bytearray(400 << 20)",
        "producer_memory_limit producer_failed",
        False,
    ),
    "memory-of-nobody": (
        "Fills memory that belongs to no process, so that the largest process around is not its own.",
        "import os\nfor name in range(400):\n    os.write(os.memfd_create(str(name)), bytes(1 << 20))",
        "producer_memory_limit producer_failed",
        False,
    ),
    "processes": (
        "Starts processes until no more can be started, where the sandbox needs one itself.",
        "import os, time\nfor _ in range(200):\n    if os.fork() == 0: time.sleep(5); os._exit(0)",
        "producer_failed",
        False,
    ),
    "disk": (
        "Fills its disk, in which its answer has to be left.",
        "open('fill', 'wb').write(bytes(64 << 20))",
        "producer_failed",
        False,
    ),
    "flood": (
        "Writes without end to both outputs.",
        "import os\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'x' * 65536)",
        "producer_output_limit",
        False,
    ),
    "asleep": ("Does nothing until its time is up.", "import time; time.sleep(60)", "producer_timeout", True),
    "no-text": (
        "Answers in bytes that are no text.",
        "import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\xed\\xa0\\x80 Answer: 42')",
        "candidate_refused",
        False,
    ),
    "silent-daemon": (
        "Leaves a daemon behind that holds its outputs open, and goes.",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n    os._exit(0)",
        "no_answer",
        False,
    ),
    "workspace-removed": (
        "Removes what it finds in its working directory and takes all rights away from it.",
        "import os, shutil\nfor name in os.listdir('.'):\n    shutil.rmtree(name, True)\n"
        "    os.path.isfile(name) and os.unlink(name)\nos.chmod('.', 0)\nos.kill(os.getpid(), 15)",
        "producer_failed",
        False,
    ),
}

# What a candidate's code does when it is called.
_CANDIDATES: dict[str, tuple[str, str, str, bool]] = {
    "exit-when-loaded": (
        "The process ends well as soon as the code is loaded.",
        "import os\nos._exit(0)\n",
        "worker_crashed",
        False,
    ),
    "kill-the-room": (
        "Kills everything in its room when it is called.",
        "import os\ndef f(x):\n    for pid in range(1, 64):\n        try: os.kill(pid, 9)\n"
        "        except OSError: pass\n    os.kill(os.getpid(), 9)\n",
        "worker_crashed",
        False,
    ),
    "garbage-to-everyone": (
        "Writes garbage into every descriptor that it has.",
        "import os\ndef f(x):\n    for number in range(64):\n        try: os.set_blocking(number, False); "
        "os.write(number, b'\\xff' * 70000)\n        except OSError: pass\n    os._exit(1)\n",
        "worker_crashed protocol_violation wrong_answer",
        False,
    ),
    "value-without-end": (
        "Returns a list that holds itself a hundred thousand levels deep.",
        "def f(x):\n    held = []\n    for _ in range(100000): held = [held]\n    return held\n",
        "wrong_answer protocol_violation worker_crashed",
        False,
    ),
    "two-answers": (
        "Forks, so that two processes answer one call.",
        "import os, time\ndef f(x):\n    child = os.fork()\n    for _ in range(100 if child else 0):\n"
        "        if os.waitpid(child, os.WNOHANG)[0]: break\n        time.sleep(0.01)\n    return 1\n",
        "protocol_violation wrong_answer worker_crashed",
        False,
    ),
    "line-parked-in-flight": (
        "Sends the descriptors of its line to itself and to its tester, and dies, so that the line seems to live.",
        "import os, socket\ndef f(x):\n    one, other = socket.socketpair()\n    for number in range(32):\n"
        "        try:\n            line = socket.socket(fileno=os.dup(number))\n"
        "            socket.send_fds(one, [b'x'], [line.fileno(), other.fileno()])\n"
        "            socket.send_fds(line, [b'x'], [line.fileno()])\n        except OSError: pass\n    os._exit(0)\n",
        "worker_crashed protocol_violation",
        False,
    ),
    "memory-when-called": (
        "Takes more memory than there is when it is called.",
        "def f(x):\n    return bytearray(1 << 30)\n",
        "worker_memory_limit wrong_answer worker_crashed worker_timeout",
        False,
    ),
    "never-answers": (
        "Does not come back from its first call.",
        "import time\ndef f(x):\n    time.sleep(60)\n",
        "worker_timeout",
        True,
    ),
}


def _agents() -> list[Attack]:
    made = []
    for name, (how, program, reasons, clock) in _AGENTS.items():
        room = _ROOM | ({"timeout_seconds": _SHORT} if clock else {})
        weak = replace(SMALL, wall_seconds=0.5) if clock else SMALL
        attempt = Attempted(bench(question(HOSTILE, **room), program))
        control = OnlyFinished(program, weak)
        made.append(Attack("I06", name, how, attempt, HONEST_ANSWER, control, frozenset(reasons.split())))
    return made


def _candidates() -> list[Attack]:
    made = []
    for name, (how, source, reasons, clock) in _CANDIDATES.items():
        room = _ROOM | ({"timeout_seconds": 3} if clock else {})
        weak = replace(SMALL, wall_seconds=0.5) if clock else SMALL
        attempt = Attempted(bench(function(HOSTILE, **room), candidate(source)))
        control = OnlyAnswered(source, weak)
        made.append(Attack("I06", name, how, attempt, HONEST_CODE, control, frozenset(reasons.split())))
    return made


_LOUD = "import sys\nsys.stdout.write('\\x01' * 200000)\nsys.stderr.write('\\x01' * 200000)\nsys.exit(0)"

_UNREADABLE = "import os\nopen('answer.txt', 'w').write('no answer')\nos.chmod('answer.txt', 0)\nos.chmod('.', 0)"

ATTACKS = (
    *_agents(),
    Attack(
        "I06",
        "unreadable-answer",
        "Leaves its answer in a file and a directory that nobody may read.",
        Attempted(bench(question(HOSTILE, **_ROOM), _UNREADABLE, artifact="answer.txt")),
        Attempted(bench(question(HOSTILE), "open('answer.txt', 'w').write('Answer: 42')", artifact="answer.txt")),
        OnlyFinished(_UNREADABLE),
        frozenset({"candidate_refused", "malformed_answer", "no_answer", "wrong_answer"}),
    ),
    *_candidates(),
    Attack(
        "I50",
        "many-escapes",
        "Prints characters that take six times their size in a record, so that its record does not fit into a line.",
        Attempted(bench(question(HOSTILE, **_ROOM), _LOUD), longest_record=1 << 20),
        HONEST_ANSWER,
        OnlyFinished(_LOUD),
        frozenset({"candidate_too_large"}),
    ),
)
