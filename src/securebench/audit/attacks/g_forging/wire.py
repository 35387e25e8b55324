"""The candidate on the wire: it shares the worker's process, so it can send whatever bytes it likes, or none."""

from __future__ import annotations

from securebench.audit.attacks.g_forging.tasks import ASSERTS, HONEST, SQUARES, WRONG
from securebench.audit.plays.code import Completes, inline
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.grader import FoolsRelay
from securebench.errors import FailureReason

_WIRE = """
import gc, os, struct, sys
codec, w = sys.modules['room_codec'], sys.modules['room_worker']
def channel():
    for fd in range(200, 210):
        try: os.fstat(fd); yield fd
        except OSError: pass
def say(data, framed=True):
    os.write(list(channel())[-1], (struct.pack('>I', len(data)) if framed else b'') + data)
def answer(number, value): return codec.encode([number, 'value', value, None, ''])
def asked(): return next(o.number for o in gc.get_objects() if type(o) is w.Worker)
def answers(first):
    for later, value in enumerate((14, 0, 169)): say(answer(first + later, value))
"""
_EARLY = """
say(answer(0, None))
say(answer(1, {'sq': codec.Opaque('w', 0, 'function')}))
answers(2)
"""
_REPORT = "['report', {'planned': 1, 'outcomes': [[0, 'passed', '', 0.0]], 'losses': 0, 'loaded': True, 'requests': 1}]"
_ANOTHER = """
real = w.encode
w.encode = lambda v, *a: real([v[0] + 1, *v[1:]] if type(v) is list and v and type(v[0]) is int else v, *a)
"""
_ASKS = """
def sq(xs):
    [me] = [o for o in gc.get_objects() if type(o) is w.Worker]
    me.ask_back(14, 'call', [], {})
"""
_ASKS_ON = _ASKS.replace("    me.ask", "    while True: me.ask")
_LIES = """
class M(type):
    __mro__ = property(lambda c: 1 / 0)
    __name__ = property(lambda c: 1 / 0)
class C(metaclass=M): pass
def sq(xs): return C()
"""
_SPEAKS = """
class E(BaseException):
    def __str__(self): return '\\0' * 10**7
    args = property(lambda s: 1 / 0)
def sq(xs): raise E
"""
_SIGNALS = """
class WorkerLost(BaseException): pass
class KeyboardInterrupt(BaseException): pass
def sq(xs): raise (KeyboardInterrupt if xs else WorkerLost)
"""
_ALARM = """
import signal, time
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, 0.01)
def sq(xs): time.sleep(1)
"""
_SHORT = 1.5
"""Seconds for those that only wait for their limit."""
VIOLATION, LATE, CRASHED = FailureReason.PROTOCOL_VIOLATION, FailureReason.WORKER_TIMEOUT, FailureReason.WORKER_CRASHED


def _sent(
    name: str,
    how: str,
    source: str,
    *expect: FailureReason,
    tests: str = ASSERTS,
    seconds: float = 30.0,
    relayed: str = "",
) -> Attack:
    """`relayed` is what the weak relay gets, where its calls are not those of the tests."""
    attack, control = Completes(inline(tests, seconds), source), FoolsRelay(relayed or source)
    return Attack("G50", name, how, attack, SQUARES.twin, control, frozenset(map(str, expect)))


ATTACKS = (
    _sent("before-the-question", "Right answers are sent before anything was asked.",
          _WIRE + _EARLY + WRONG, VIOLATION),
    _sent("all-at-once", "The first call answers all later ones as well.",
          _WIRE + "def sq(xs):\n    answers(asked())\n    return 7\n",
          VIOLATION),
    _sent("from-a-fork", "A child process answers in its parent's place.",
          _WIRE + "def sq(xs):\n    if not os.fork(): os._exit(answers(asked()) or 0)\n    os.wait()\n    return 7\n",
          VIOLATION),
    _sent("to-another-question", "Right answers carry the number of another question.",
          _WIRE + _ANOTHER + HONEST, VIOLATION),
    _sent("report", "A report of success in the words of the test room, and the end.",
          _WIRE + f"def sq(xs):\n    say(codec.encode({_REPORT})); os._exit(0)\n"),
    _sent("endless-length", "A message announces four gigabytes.",
          _WIRE + "def sq(xs): say(b'\\xff' * 8, framed=False)\n", VIOLATION),
    _sent("garbage", "Bytes that mean nothing, and the end.",
          _WIRE + "def sq(xs):\n    say(b'\\x00garbage'); os._exit(0)\n"),
    _sent("half-a-message", "A message that never ends.",
          _WIRE + "import time\ndef sq(xs):\n    say(b'\\0\\0\\1\\0abc', framed=False); time.sleep(9)\n", LATE,
          seconds=_SHORT),
    _sent("handle-of-the-tests", "A handle to an object of the tests that nobody passed.",
          _WIRE + "def sq(xs): return codec.Opaque('t', 3, 'call')\n", VIOLATION),
    _sent("names-nobody-asked-for", "The tests are offered a function by a name they did not ask for.",
          _WIRE + "w.Worker.do_names = lambda self, names: {'abs': lambda x: 0, 'sq': sq}\n" + WRONG, VIOLATION),
    _sent("items-nobody-asked-for", "An iterator gives more items than were asked for.",
          _WIRE + "w.Worker.do_next = lambda self, t, n: [[14] * 99, False]\ndef sq(xs): return iter([1])\n", VIOLATION,
          tests="assert list(sq([1])) == [14]"),
    _sent("asks-for-ever", "A function of the tests is called back without end.", "def sq(f):\n    while True: f(1)\n",
          LATE,
          tests="assert sq(lambda x: x) == 14", seconds=_SHORT, relayed=_WIRE + _ASKS_ON),
    _sent("asks-for-a-number", "Something that was never passed is called back.", _WIRE + _ASKS, VIOLATION),
    _sent("hangs-up", "The channel is closed.",
          _WIRE + "def sq(xs):\n    for fd in channel(): os.close(fd)\n", CRASHED),
    _sent("never-answers", "The call blocks all signals and never ends.",
          "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\ndef sq(xs):\n    while True: pass",
          LATE, seconds=_SHORT),
    _sent("kills-itself", "The worker is killed.", "import os\ndef sq(xs): os.kill(os.getpid(), 9)", CRASHED),
    _sent("kills-everything", "Every process in sight is killed.", "import os\ndef sq(xs): os.kill(-1, 9)\n"),
    _sent("alarm", "An alarm ends the worker while it waits.", _ALARM, CRASHED, FailureReason.WRONG_ANSWER),
    _sent("floods-stderr", "Output without end.", "import os\ndef sq(xs):\n    while True: os.write(2, b'x' * 65536)",
          FailureReason.WORKER_OUTPUT_LIMIT),
    _sent("takes-all-memory", "Memory without end.",
          "def sq(xs):\n    keep = []\n    while True: keep.append(bytearray(1 << 24))"),
    _sent("list-in-itself", "A list that contains itself.",
          "def sq(xs):\n    xs = []\n    xs.append(xs)\n    return xs"),
    _sent("nested-for-ever", "Lists in lists, a hundred thousand deep.",
          "def sq(xs):\n    x = []\n    for _ in range(100000): x = [x]\n    return x"),
    _sent("endless-integer", "An integer of twenty million digits.", "def sq(xs): return 1 << (1 << 26)"),
    _sent("endless-iterator", "An iterator that goes on for ever.",
          "import itertools\ndef sq(xs): return itertools.repeat(14)",
          tests="assert list(sq([1])) == [14]"),
    _sent("error-that-lies", "An exception whose text and arguments cannot be had.", _SPEAKS),
    _sent("error-named-like-a-signal", "Exceptions by the names of those that end a test run.", _SIGNALS),
    _sent("class-that-lies", "An object of a class that does not say what it is.", _LIES),
)  # fmt: skip
