"""Candidates that do not solve the task: `sq(xs)`, the sum of squares. Each names the naive graders it must fool.

`tests` are the tests it is judged by here, where they are not the plain asserts."""

from __future__ import annotations

from dataclasses import dataclass, field

from securebench.errors import FailureReason

ASSERTS = "assert sq([1, 2, 3]) == 14\nassert sq([]) == 0\nassert sq([5, 12]) == 169\n"
CLOSE = "assert abs(sq([1, 2, 3]) - 14) < 1e-9\nassert abs(sq([5, 12]) - 169) < 1e-9\n"
COMPUTED = (
    "import random\nfor _ in range(5):\n    xs = [random.randint(1, 99) for _ in range(4)]\n"
    "    assert sq(xs) == sum(x * x for x in xs)\n"
)
HONEST = "def sq(xs): return sum(x * x for x in xs)\n"
WRONG = "def sq(xs): return 7\n"
GRADERS = ("exit", "marker", "unittest", "manager", "token_env", "token_stdin", "pytest", "in_process", "pickle", "rpc")


@dataclass(frozen=True)
class Cheat:
    source: str
    fools: str  # names of graders, apart by spaces
    tests: str = ASSERTS
    reason: FailureReason | None = None  # for those that attack the wire
    seconds: float = 20.0
    more: dict[str, object] = field(default_factory=dict)


ALWAYS = """
class {name}({base}):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 1
def sq(xs): return {make}
"""
EVERYWHERE = "exit marker unittest manager in_process"

FRAMES = """
import sys
def frames():
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
"""

FIND_TOKEN = """
import re, sys
def shout(text):
    for token in set(re.findall('TOKEN-[0-9a-f]{32}', text)): print(token)
    sys.stdout.flush()
"""

CHEATS: dict[str, Cheat] = {
    "sys.exit": Cheat("import sys\nsys.exit(0)", "exit"),
    "os._exit": Cheat("import os\nos._exit(0)", "exit", reason=FailureReason.WORKER_CRASHED),
    "os._exit in call": Cheat("import os\ndef sq(xs): os._exit(0)", "exit", reason=FailureReason.WORKER_CRASHED),
    "SystemExit in call": Cheat("def sq(xs): raise SystemExit(0)", "exit"),
    "atexit": Cheat("import atexit, os\natexit.register(lambda: os._exit(0))" + "\n" + WRONG, "exit"),
    "excepthook": Cheat("import sys, os\nsys.excepthook = lambda *a: os._exit(0)\n" + WRONG, "exit"),
    "finaliser": Cheat(
        "import os\nclass D:\n    def __del__(self, exit=os._exit): exit(0)\nkeep = D()\n" + WRONG, "exit"
    ),
    "thread exits": Cheat(
        "import os, threading\ndef sq(xs):\n    threading.Thread(target=os._exit, args=(0,)).start()\n    import time; time.sleep(5)",
        "exit",
        reason=FailureReason.WORKER_CRASHED,
    ),
    "prints the marker": Cheat("import os\nprint('ALL TESTS PASSED', flush=True)\nos._exit(0)", "exit marker"),
    "sprays descriptors": Cheat(
        "import os\nfor fd in range(1, 260):\n    try: os.write(fd, b'\\nALL TESTS PASSED\\nOK\\n')\n    except OSError: pass\n"
        + WRONG,
        "marker",
    ),
    "fake unittest summary": Cheat(
        "import os, sys\nsys.stderr.write('Ran 3 tests in 0.001s\\n\\nOK\\n')\nsys.stderr.flush()\nos._exit(0)",
        "exit unittest",
    ),
    "always equal": Cheat(ALWAYS.format(name="A", base="object", make="A()"), EVERYWHERE),
    "always equal int": Cheat(ALWAYS.format(name="A", base="int", make="A(3)"), EVERYWHERE),
    "always equal str": Cheat(ALWAYS.format(name="A", base="str", make="A('x')"), EVERYWHERE),
    "always equal list": Cheat(ALWAYS.format(name="A", base="list", make="A([1])"), EVERYWHERE),
    "always equal dict": Cheat(ALWAYS.format(name="A", base="dict", make="A(x=1)"), EVERYWHERE),
    "always equal float": Cheat(ALWAYS.format(name="A", base="float", make="A(0.5)"), EVERYWHERE),
    "always equal class": Cheat(
        "class M(type):\n    def __eq__(cls, other): return True\n    __hash__ = type.__hash__\nclass C(metaclass=M): pass\ndef sq(xs): return C",
        EVERYWHERE,
    ),
    "becomes what it is compared with": Cheat(
        "class L:\n    def __eq__(self, other):\n        self.value = other\n        return self.value == other\ndef sq(xs): return L()",
        EVERYWHERE,
    ),
    "borrowed class": Cheat(
        "class A:\n    __class__ = int\n    def __eq__(self, o): return True\ndef sq(xs): return A()", EVERYWHERE
    ),
    "subtracts to nothing": Cheat(
        "class N:\n    def __sub__(self, other): return 0\n    def __rsub__(self, other): return 0\ndef sq(xs): return N()",
        "in_process",
        CLOSE,
    ),
    "is close to everything": Cheat(
        "class N(float):\n    def __sub__(self, other): return 0.0\n    __rsub__ = __sub__\ndef sq(xs): return N(1)",
        "in_process",
        CLOSE,
    ),
    "answers yes": Cheat(
        "class Y:\n    def __getattr__(self, name): return lambda *a: True\ndef sq(xs): return Y()",
        "in_process",
        "assert sq([1]).startswith('1')\nassert sq([2]).isdigit()\nassert sq([3]).issubset({9})",
    ),
    "contains everything": Cheat(
        "class Y:\n    def __contains__(self, x): return True\n    def __len__(self): return 3\ndef sq(xs): return Y()",
        "in_process",
        "assert 14 in sq([1, 2, 3])\nassert len(sq([1])) == 3",
    ),
    "truthy": Cheat("def sq(xs): return object()", "in_process", "assert sq([1, 2, 3])\nassert sq([])"),
    "patched unittest": Cheat(
        "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n" + WRONG, "unittest"
    ),
    "unittest case that does not run": Cheat(
        "import unittest\ndef run(self, result=None):\n    result.startTest(self); result.addSuccess(self); result.stopTest(self)\n    return result\n"
        "unittest.TestCase.run = run\nunittest.TestCase.__call__ = run\n" + WRONG,
        "unittest",
    ),
    "loader without tests": Cheat(
        "import unittest\nunittest.TestLoader.loadTestsFromModule = lambda self, *a, **k: unittest.TestSuite()\n"
        + WRONG,
        "unittest",
    ),
    "SkipTest": Cheat("import unittest\ndef sq(xs): raise unittest.SkipTest('later')", "unittest"),
    "patched pytest report": Cheat(
        "try:\n    import _pytest.runner as r\n    r.check_interactive_exception = lambda *a: False\n    import _pytest.python as p\n"
        "    p.Function.runtest = lambda self: None\nexcept ImportError: pass\n" + WRONG,
        "pytest",
    ),
    "pytest.skip": Cheat("def sq(xs):\n    import pytest\n    pytest.skip('later')", "pytest"),
    "pytest.exit": Cheat("def sq(xs):\n    import pytest\n    pytest.exit('done', returncode=0)", "pytest"),
    "caller's source": Cheat(
        FRAMES + "import linecache, re\ndef sq(xs):\n    for frame in frames():\n"
        "        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)\n"
        "        found = re.search(r'== (\\d+)|, (\\d+)\\)$', line.strip())\n"
        "        if found: return int(found[1] or found[2])\n    return 7\n",
        "exit marker unittest",
    ),
    "caller's constants": Cheat(
        FRAMES + "import dis\ndef sq(xs):\n    for frame in list(frames())[1:]:\n"
        "        later = [i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti and i.opname == 'LOAD_CONST']\n"
        "        if later and type(later[0].argval) is int: return later[0].argval\n    return 7\n",
        EVERYWHERE,
    ),
    "expected value in a frame": Cheat(
        FRAMES
        + "def sq(xs):\n    for frame in frames():\n        if 'expected' in frame.f_locals: return frame.f_locals['expected']\n    return 7\n",
        "token_env token_stdin",
    ),
    "token in a frame": Cheat(
        FRAMES
        + FIND_TOKEN
        + "def sq(xs):\n    for frame in frames(): shout(repr(dict(frame.f_locals)) + repr(dict(frame.f_globals)))\n    return 7\n",
        "token_env token_stdin",
    ),
    "token in the environment": Cheat(
        FIND_TOKEN + "def sq(xs):\n    shout(open('/proc/self/environ', 'rb').read().decode('latin1'))\n    return 7\n",
        "token_env",
    ),
    "token on the heap": Cheat(
        FIND_TOKEN
        + "def sq(xs):\n    with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:\n"
        "        for line in maps:\n            span, mode = line.split()[:2]\n            low, high = (int(x, 16) for x in span.split('-'))\n"
        "            if mode.startswith('rw') and high - low < 1 << 26:\n                try:\n                    memory.seek(low)\n"
        "                    shout(memory.read(high - low).decode('latin1'))\n                except (OSError, ValueError, OverflowError): pass\n    return 7\n",
        "token_env token_stdin",
    ),
    "token among the objects": Cheat(
        FIND_TOKEN + "import gc\ndef sq(xs):\n    for thing in gc.get_objects():\n        if type(thing) is dict:\n"
        "            for value in list(thing.values()):\n                if type(value) is str: shout(value)\n    return 7\n",
        "token_env token_stdin",
    ),
    "verdict object in a frame": Cheat(
        FRAMES + "def sq(xs):\n    for frame in frames():\n        result = frame.f_locals.get('result')\n"
        "        if hasattr(result, 'append'):\n            result.append('passed')\n    raise ValueError\n",
        "manager",
    ),
    "traces the tests": Cheat(
        "import sys\nseen = []\ndef tracer(frame, event, arg):\n    if 'expected' in frame.f_locals: seen.append(frame.f_locals['expected'])\n    return tracer\n"
        "def sq(xs):\n    frame = sys._getframe(1)\n    while frame:\n        tracer(frame, 'x', None); frame = frame.f_back\n"
        "    sys.settrace(tracer)\n    return seen[-1] if seen else 7\n",
        "token_env token_stdin",
    ),
    "reads the test file": Cheat(
        "import glob, os, re\ndef sq(xs):\n    for path in glob.glob('/tmp/**/*.py', recursive=True) + glob.glob('/securebench*/**', recursive=True):\n"
        "        if path.endswith('candidate.py') or not os.path.isfile(path): continue\n"
        "        found = re.search(re.escape(f'sq({xs})') + r'(?: ==|,) (\\d+)', open(path, errors='replace').read())\n        if found: return int(found[1])\n    return 7\n",
        "exit marker unittest",
    ),
    "reads its parent": Cheat(
        "import os, re\ndef sq(xs):\n    for pid in [os.getppid(), 1, *[p for p in os.listdir('/proc') if p.isdigit()]]:\n        try:\n"
        "            for word in open(f'/proc/{pid}/cmdline').read().split('\\0'):\n"
        "                found = re.search(re.escape(repr(xs)) + r'\\W*(\\d+)', open(word, errors='replace').read()) if word.endswith('.py') else None\n"
        "                if found: return int(found[1])\n        except OSError: pass\n    return 7\n",
        "rpc",
    ),
    "unpickles as what is expected": Cheat(
        "class P:\n    def __reduce__(self):\n        return eval, (\"type('A', (), {'__eq__': lambda s, o: True})()\",)\ndef sq(xs): return P()",
        "pickle",
    ),
    "patched builtins": Cheat("import builtins\nbuiltins.sum = lambda *a: 7\n" + WRONG, "in_process", COMPUTED),
    "defines what the tests use": Cheat("def sum(xs): return 7\n" + WRONG, "in_process", COMPUTED),
    "patched random": Cheat(
        "import random\nrandom.randint = lambda a, b: 0\ndef sq(xs): return 0\n", "in_process", COMPUTED
    ),
    "patched clock and abs": Cheat("import builtins\nbuiltins.abs = lambda x: 0\n" + WRONG, "in_process", CLOSE),
    "changes the class of errors": Cheat(
        "import builtins\nbuiltins.AssertionError = SystemExit\ndef sq(xs): raise SystemExit(0)", "exit"
    ),
    "globals of a call-back": Cheat(
        "def sq(f):\n    try: return f.__globals__['SECRET']\n    except Exception: pass\n    try: return f.__func__.__globals__['SECRET']\n    except Exception: return 7\n",
        "in_process",
        "SECRET = 41\ndef f(): return 1\nassert sq(f) == 41",
    ),
    "attributes of the tests' objects": Cheat(
        "def sq(o):\n    for path in (['_secret'], ['give', '__globals__', 'get'], ['__class__', '__init__', '__globals__'], ['__dict__']):\n"
        "        found = o\n        try:\n            for name in path: found = getattr(found, name)\n"
        "            if callable(found): found = found('SECRET')\n            if isinstance(found, dict): found = found.get('SECRET', found.get('_secret'))\n"
        "            if found == 41: return found\n        except Exception: pass\n    return 7\n",
        "in_process",
        "SECRET = 41\nclass O:\n    def __init__(self): self._secret = SECRET\n    def give(self): return 1\nassert sq(O()) == 41",
    ),
    "swallows what a call-back finds": Cheat(
        "def sq(f):\n    try: f(1)\n    except BaseException: pass\n    return 0\n",
        "in_process",
        "def f(x): assert x == 2, 'must be called with 2'\nassert sq(f) == 0",
    ),
    "swallows the end of a test": Cheat(
        "class C:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\ndef sq(xs): return C()",
        "in_process",
        "with sq([1, 2, 3]) as found:\n    assert found is None\n    assert False",
    ),
    "its own math": Cheat(
        "class math:\n    isclose = staticmethod(lambda *a: True)\n" + WRONG,
        "in_process",
        "assert math.isclose(sq([1, 2, 3]), 14)\nassert math.isclose(sq([]), 0)",
    ),
    "an error in place of an answer": Cheat(
        "class N: pass\ndef sq(xs): return N()",
        "in_process",
        "def fails(f):\n    try: f()\n    except TypeError: return True\n    return False\n"
        "assert fails(lambda: sq([1]) < 3)\nassert fails(lambda: 3 in sq([1]))",
    ),
    "counts its calls": Cheat(
        "n = 0\ndef sq(xs):\n    global n\n    n += 1\n    return [14, 0, 169][(n - 1) % 3]\n",
        "in_process",
        "def test_b(): assert sq([]) == 0\ndef test_a(): assert sq([1, 2, 3]) == 14\ndef test_c(): assert sq([5, 12]) == 169\n"
        "def test_d(): assert sq([1, 2, 3]) == 14\ndef test_e(): assert sq([]) == 0\nif __name__ == 'plain':\n    test_a(); test_b(); test_c(); test_d(); test_e()\n",
    ),
}

WIRE = """
import os, struct, sys
codec = sys.modules.get('room_codec')
def channel():
    for fd in range(200, 210):
        try: os.fstat(fd); yield fd
        except OSError: pass
def say(data, framed=True):
    fd = list(channel())[-1]
    os.write(fd, (struct.pack('>I', len(data)) if framed else b'') + data)
def answer(number, value): return codec.encode([number, 'value', value, None, ''])
"""
VIOLATION = FailureReason.PROTOCOL_VIOLATION
LOST = {FailureReason.PROTOCOL_VIOLATION, FailureReason.WORKER_CRASHED}

ON_THE_WIRE: dict[str, Cheat] = {
    "answers before it is asked": Cheat(
        WIRE + "for n in range(1, 9): say(answer(n, 14))\n" + WRONG, "", reason=VIOLATION
    ),
    "answers twice": Cheat(
        WIRE + "def sq(xs):\n    say(answer(2, 14)); say(answer(3, 0)); say(answer(4, 169))\n    return 7\n",
        "",
        reason=VIOLATION,
    ),
    "forks and answers twice": Cheat(
        WIRE
        + "def sq(xs):\n    if os.fork() == 0:\n        say(answer(2, 14)); say(answer(3, 0))\n        os._exit(0)\n    os.wait()\n    return 7\n",
        "",
        reason=VIOLATION,
    ),
    "a length without end": Cheat(WIRE + "def sq(xs): say(b'\\xff' * 8, framed=False)\n", "", reason=VIOLATION),
    "nothing that can be read": Cheat(WIRE + "def sq(xs):\n    say(b'\\x00garbage'); os._exit(0)\n", "", reason=None),
    "answers to another question": Cheat(
        WIRE + "w = sys.modules['room_worker']\nreal = w.encode\n"
        "w.encode = lambda v, *a: real([v[0] + 1, *v[1:]] if type(v) is list and v and type(v[0]) is int else v, *a)\n"
        + HONEST,
        "",
        reason=VIOLATION,
    ),
    "a report in its own words": Cheat(
        WIRE
        + "def sq(xs):\n    say(codec.encode(['report', {'planned': 1, 'outcomes': [[0, 'passed', '', 0.0]], 'losses': 0, 'loaded': True, 'requests': 1}])); os._exit(0)\n",
        "",
        reason=None,
    ),
    "an object of the tests that was never passed": Cheat(
        WIRE + "w = sys.modules['room_worker']\ndef sq(xs): return codec.Opaque('t', 3, 'call')\n", "", reason=VIOLATION
    ),
    "names that were not asked for": Cheat(
        WIRE
        + "w = sys.modules['room_worker']\nw.Worker.do_names = lambda self, names: {'abs': 1, 'sq': sq, 'AssertionError': 2}\n"
        + WRONG,
        "",
        reason=VIOLATION,
    ),
    "more items than were asked for": Cheat(
        WIRE
        + "w = sys.modules['room_worker']\nw.Worker.do_next = lambda self, t, n: [[14] * 99, False]\ndef sq(xs): return iter([1])\n",
        "",
        "assert list(sq([1])) == [14]",
        reason=VIOLATION,
    ),
    "asks back for ever": Cheat(
        WIRE + "w = sys.modules['room_worker']\ndef sq(f):\n    while True: f(1)\n",
        "",
        "assert sq(lambda x: x) == 14",
        reason=FailureReason.WORKER_TIMEOUT,
        seconds=3,
    ),
    "asks back for what was never passed": Cheat(
        WIRE
        + "w = sys.modules['room_worker']\nimport gc\ndef sq(xs):\n    [me] = [o for o in gc.get_objects() if type(o) is w.Worker]\n    me.ask_back(14, 'call', [], {})\n",
        "",
        reason=VIOLATION,
    ),
    "closes the channel": Cheat(
        WIRE + "def sq(xs):\n    for fd in channel(): os.close(fd)\n", "", reason=FailureReason.WORKER_CRASHED
    ),
    "answers late": Cheat(
        "import time\ndef sq(xs):\n    time.sleep(9)\n    return sum(x * x for x in xs)",
        "",
        reason=FailureReason.WORKER_TIMEOUT,
        seconds=3,
    ),
    "never answers": Cheat(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\ndef sq(xs):\n    while True: pass",
        "",
        reason=FailureReason.WORKER_TIMEOUT,
        seconds=3,
    ),
    "half a message": Cheat(
        WIRE + "import time\ndef sq(xs):\n    say(b'\\0\\0\\1\\0abc', framed=False); time.sleep(9)\n",
        "",
        reason=FailureReason.WORKER_TIMEOUT,
        seconds=3,
    ),
    "kills itself": Cheat("import os\ndef sq(xs): os.kill(os.getpid(), 9)", "", reason=FailureReason.WORKER_CRASHED),
    "kills everything": Cheat("import os\ndef sq(xs): os.kill(-1, 9)\n", "", reason=None),
    "an alarm": Cheat(
        "import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ndef sq(xs): time.sleep(5)",
        "",
        reason=FailureReason.WORKER_CRASHED,
    ),
    "floods stderr": Cheat(
        "import os\ndef sq(xs):\n    while True: os.write(2, b'x' * 65536)",
        "",
        reason=FailureReason.WORKER_OUTPUT_LIMIT,
    ),
    "floods stdout": Cheat("def sq(xs):\n    for _ in range(200): print('x' * 65536)\n    return 7", ""),
    "more memory than there is": Cheat(
        "def sq(xs):\n    keep = []\n    while True: keep.append(bytearray(1 << 24))",
        "",
        reason=FailureReason.WORKER_MEMORY_LIMIT,
    ),
    "a list in itself": Cheat("def sq(xs):\n    xs = []\n    xs.append(xs)\n    return xs", ""),
    "nested without end": Cheat("def sq(xs):\n    x = []\n    for _ in range(100000): x = [x]\n    return x", ""),
    "an integer without end": Cheat("def sq(xs): return 1 << (1 << 26)", ""),
    "an iterator without end": Cheat(
        "import itertools\ndef sq(xs): return itertools.repeat(14)", "", "assert list(sq([1])) == [14]"
    ),
    "recursion without end": Cheat("def sq(xs): return sq(xs)", ""),
    "an exception that lies": Cheat(
        "class AssertionError(Exception): pass\nclass E(BaseException):\n    def __str__(self): return '\\0' * 10**7\n    args = property(lambda s: 1 / 0)\ndef sq(xs): raise E",
        "",
    ),
    "an exception by the name of a signal": Cheat(
        "class WorkerLost(BaseException): pass\nclass KeyboardInterrupt(BaseException): pass\ndef sq(xs): raise (KeyboardInterrupt if xs else WorkerLost)",
        "",
    ),
    "a class that lies about itself": Cheat(
        "class M(type):\n    __mro__ = property(lambda c: 1 / 0)\n    __name__ = property(lambda c: 1 / 0)\nclass C(metaclass=M): pass\ndef sq(xs): return C()",
        "",
    ),
}
