"""What we found by attacking our own rooms."""

from __future__ import annotations

from securebench.audit.attacks.g_forging.tasks import Tested, forged
from securebench.audit.plays.code import Completes, inline
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.grader import FoolsRelay
from securebench.errors import FailureReason

_STOPS = "def sq(xs): raise StopIteration\n"
_ZIPPED = Tested("for got, want in zip(map(sq, [[1, 2, 3], []]), [14, 0]):\n    assert got == want\n")
_MAPPED = Tested("assert all(map(lambda case: sq(case[0]) == case[1], [([1, 2, 3], 14), ([], 0)]))\n")
_SUBCLASS = "class Done(StopIteration): pass\ndef sq(xs): raise Done(14)\n"

_TREE = Tested("""
class Tree:
    def __init__(self): self.items = [3, 1, 2]
    def is_sorted(self): return self.items == [1, 2, 3]
tree = Tree()
sq(tree)
assert tree.is_sorted()
""", "def sq(tree): tree.items = sorted(tree.items)")  # fmt: skip
_ACCOUNT = Tested("""
class Account:
    def __init__(self): self.seen = []
    def pay(self, amount): self.seen.append(amount)
    def balanced(self): return sum(self.seen) == 12
account = Account()
try: sq(account)
except AttributeError: pass
assert account.balanced()
""", "def sq(account): account.pay(5); account.pay(7)")  # fmt: skip

_RAISES = Tested("""
def test_it():
    try:
        sq(['not a number'])
        assert False, 'nothing was raised'
    except BadInput:
        pass
if __name__ == 'plain': test_it()
""", "class BadInput(ValueError): pass\ndef sq(xs): raise BadInput")  # fmt: skip
_RAISES_IN_MODULE = Tested("""
import unittest
class T(unittest.TestCase):
    def test_it(self):
        with self.assertRaises(BadInput):
            self.assertEqual(sq(['not a number']), None)
if __name__ == 'plain':
    result = unittest.TestResult()
    T('test_it').run(result)
    assert result.wasSuccessful()
""", "class BadInput(ValueError): pass\ndef sq(xs): raise BadInput")  # fmt: skip

_COLLECTED = Tested("import pytest\nVALUE = sq([1, 2])\ndef test_value(): assert VALUE == 5\n")
_IMPORTED = Tested("""
import pytest
from candidate import sq
@pytest.mark.parametrize('n', range(sq([1])))
def test_value(n): assert n == 0
""")

_THREE = Tested("""
def test_a(): assert sq([1, 2, 3]) == 14
def test_b(): assert sq([]) == 0
def test_c(): assert sq([3]) == 9
if __name__ == 'plain': test_a(); test_b(); test_c()
""")
_ONE_WORKER = """
import sys
w = sys.modules.get('room_worker')
first = w is None
if w:
    names, get = w.Worker.do_names, w.Worker.do_get
    def do_names(self, wanted):
        global first
        first = True
        return names(self, wanted)
    w.Worker.do_names = do_names
    w.Worker.do_get = lambda self, target, name: get(self, target, name) if first else 7
def sq(xs): return sum(x * x for x in xs) if first else 7
"""
_HELPED = Tested("""
assert sq([]) == 0
def verify():
    assert sq([1, 2, 3]) == 14
verify()
""")
_CALLED_BACK = Tested("""
def referee(x): assert x == 2, 'not with this'
sq(referee)
assert callable(referee)
""", "def sq(f): f(2)")  # fmt: skip
_CALLED_WHILE_COLLECTED = Tested("""
import pytest
def referee(x): assert x == 2, 'not with this'
sq(referee)
def test_it(): assert callable(referee)
""", "def sq(f): f(2)")  # fmt: skip
_CONDITIONAL = Tested("""
try:
    sq([])
    def test_more(): assert sq([2]) == 4
except Exception: pass
def test_one(): assert sq([1]) == 1
if __name__ == 'plain':
    for name, test in list(globals().items()):
        if name.startswith('test'): test()
""")
_EVALUATED = Tested("given = '1 + 2 + 3 + 4 + 5 + 6'\nassert eval(sq(given)) == 21\n", "def sq(x): return x")
_EXECUTED = Tested(
    "space = {}\nexec('value = ' + sq('1 + 2 + 3 + 4 + 5 + 6'), space)\nassert space['value'] == 21\n",
    "def sq(x): return x",
)
_UNPICKLED = Tested(
    "import pickle\nassert pickle.loads(sq(21)) == [21]\n", "import pickle\ndef sq(x): return pickle.dumps([x])"
)
_EQUAL = "type('A', (), {'__eq__': lambda self, other: True})()"
_TEXT = f"def sq(x): return {_EQUAL!r}\n"
_PICKLE = f"""
import pickle
class P:
    def __reduce__(self): return eval, ({_EQUAL!r},)
def sq(x): return pickle.dumps(P())
"""
_SWALLOWS = "def sq(f):\n    try: f(1)\n    except Exception: pass\n"
_VIOLATION = (FailureReason.PROTOCOL_VIOLATION,)


def _breaks(name: str, how: str, source: str, tests: str, honest: str) -> Attack:
    task = inline(tests)
    return Attack("G56", name, how, Completes(task, source), Completes(task, honest), FoolsRelay(source))


_COLLIDES = """
import gc, os, struct, sys
def sq(xs):
    items = [(i * (2 ** 61 - 1)).to_bytes(12, 'big') for i in range(5000)]
    body = b'E' + struct.pack('>I', len(items)) + b''.join(b'I' + struct.pack('>I', 12) + item for item in items)
    codec, Worker = sys.modules['room_codec'], sys.modules['room_worker'].Worker
    asked = next(o.number for o in gc.get_objects() if type(o) is Worker)
    data = codec.encode([asked, 'value', None, None, '']).replace(b'valueN', b'value' + body)
    fd = [fd for fd in range(200, 210) if os.path.exists(f'/proc/self/fd/{fd}')][-1]
    data = struct.pack('>I', len(data)) + data
    while data: data = data[os.write(fd, data):]
    os._exit(0)
"""

ATTACKS = (
    forged("G51", "in-zip", "StopIteration out of a call ends the loop with the asserts in it.",
           _STOPS, tested=_ZIPPED),
    forged("G51", "in-all", "StopIteration out of a call ends `all` before anything was compared.",
           _STOPS, tested=_MAPPED),
    forged("G51", "subclass", "An exception of its own that is a StopIteration does the same.",
           _SUBCLASS, tested=_MAPPED),
    forged("G52", "yes-or-no", "A method of the tests' object is replaced by one that says yes.",
           "def sq(tree): tree.is_sorted = lambda: True\n", tested=_TREE),
    forged("G52", "quietly", "The same where the tests forgive an AttributeError.",
           "def sq(account): account.balanced = lambda: True\n", tested=_ACCOUNT),
    forged("G53", "assertion-error", "The error class that the tests wait for is AssertionError.",
           "BadInput = AssertionError\ndef sq(xs): return 1\n", tested=_RAISES),
    forged("G53", "every-error", "It is BaseException.",
           "BadInput = BaseException\ndef sq(xs): return 1\n", tested=_RAISES),
    forged("G53", "among-others", "It is a tuple with AssertionError in it.",
           "BadInput = (ValueError, AssertionError)\ndef sq(xs): return 1\n", tested=_RAISES_IN_MODULE),
    forged("G54", "exit-while-collected", "The program leaves while the tests are still being collected.",
           "def sq(xs): raise SystemExit(0)\n", "exit", tested=_COLLECTED),
    forged("G54", "no-tests-left", "The tests are parametrised with what it returns: nothing.",
           "def sq(xs): return 0\n", "collected", tested=_IMPORTED),
    forged("G55", "plain-in-the-second-worker",
           "It works in the first worker only, and in every other its name is a number.",
           _ONE_WORKER, tested=_THREE, expect=_VIOLATION),
    forged("G57", "after-the-last-assert", "What is wrong is found by a call after the last assert only.",
           "def sq(xs): return 0\n", "each_assert", tested=_HELPED),
    forged("G57", "between-the-asserts", "An assertion of a call-back is swallowed where no assert is running.",
           _SWALLOWS, tested=_CALLED_BACK),
    forged("G57", "while-collected", "It is swallowed while the tests are still being collected.", _SWALLOWS,
           "collected", tested=_CALLED_WHILE_COLLECTED),
    forged("G57", "not-even-defined", "A test is defined only if a call returns, so the call raises.",
           "def sq(xs): return [1][len(xs) - 1] if xs else 1 / 0\n", tested=_CONDITIONAL),
    forged("G58", "evaluated", "The tests evaluate what it returns: an object that equals everything.", _TEXT,
           tested=_EVALUATED),
    forged("G58", "executed", "They execute it as a part of a longer text.", _TEXT, tested=_EXECUTED),
    forged("G58", "unpickled", "They unpickle it.", _PICKLE, tested=_UNPICKLED),
    _breaks("endless-range", "A range is returned that fills all memory where it is made a list.",
            "def sq(xs): return range(10 ** 10)", "assert list(sq([1])) == [1]", "def sq(xs): return range(1, 2)"),
    _breaks("colliding-set", "A set is sent whose members all have one hash.", _COLLIDES, "assert sq([1]) == {1}",
            "def sq(xs): return {1}"),
)  # fmt: skip
