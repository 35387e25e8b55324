"""What ordinary tests do with ordinary candidates, across the wall between the rooms."""

from __future__ import annotations

from typing import Any

import pytest
from tests.attacks.rooms.judging import Trial, verdict, verdicts

from securebench.errors import FailureReason, PackError
from securebench.verifiers.base import Assurance, Status

ADD = "def add(a, b):\n    return a + b\n"

HONEST: dict[str, Trial] = {
    "asserts": Trial(ADD, "x = 2\nassert add(x, 2) == 4\nassert add('a', 'b') == 'ab'"),
    "check": Trial(
        ADD, "def check(candidate):\n    for i in range(5):\n        assert candidate(i, 1) == i + 1", "add"
    ),
    "functions": Trial(
        ADD, "from candidate import add\ndef test_a():\n    assert add(1, 1) == 2\ndef test_b(): assert add(2, 2) == 4"
    ),
    "module by another name": Trial(ADD, "import solution as s\ndef test_a():\n    assert s.add(1, 1) == 2"),
    "star import": Trial(
        ADD + "len = None", "from candidate import *\ndef test_a():\n    assert add(1, 1) == len('ab')"
    ),
    "unittest": Trial(
        ADD,
        "import unittest\nfrom candidate import add\nclass T(unittest.TestCase):\n"
        "    def setUp(self): self.x = 1\n"
        "    def test_a(self): self.assertEqual(add(self.x, 1), 2)\n"
        "    def test_b(self):\n        with self.assertRaises(TypeError): add(1, 'a')",
    ),
    "pytest": Trial(
        ADD,
        "import pytest\nfrom candidate import add\n"
        "@pytest.fixture\ndef one(): return 1\n"
        "@pytest.mark.parametrize('a,b', [(1, 2), (3, 4)])\ndef test_table(a, b): assert add(a, b) == a + b\n"
        "def test_fixture(one): assert add(one, one) == pytest.approx(2)\n"
        "def test_raises():\n    with pytest.raises(TypeError, match='unsupported'): add(1, None)",
    ),
    "pytest class": Trial(
        ADD, "from candidate import add\nclass TestAdd:\n    def test_a(self): assert add(1, 1) == 2"
    ),
    "pytest prints": Trial(
        "def hello(name): print('hello', name)",
        "from candidate import hello\ndef test_out(capsys):\n    hello('you')\n    assert capsys.readouterr().out == 'hello you\\n'",
    ),
    "prints": Trial(
        "def hello(name): print('hello', name)",
        "import io, contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n    hello('you')\n"
        "assert out.getvalue() == 'hello you\\n'",
    ),
    "changed arguments": Trial(
        "def clear(xs, d):\n    xs.sort(); xs.append([9]); d['new'] = xs[0]; d['in'].append(1)",
        "xs, inner = [3, 1], []\nd = {'old': 1, 'in': inner}\nclear(xs, d)\nassert xs == [1, 3, [9]]\n"
        "assert d == {'old': 1, 'new': 1, 'in': [1]} and inner == [1]",
    ),
    "call-backs": Trial(
        "def apply(f, xs): return [f(x) for x in xs]\ndef twice(f): return lambda x: f(f(x))",
        "seen = []\ndef f(x):\n    seen.append(x)\n    return x * 2\nassert apply(f, [1, 2]) == [2, 4] and seen == [1, 2]\n"
        "assert twice(f)(3) == 12\nassert apply(apply_to_self, [1]) == [[2]] if False else True\n"
        "assert apply(lambda x: apply(f, [x]), [5]) == [[10]]",
    ),
    "classes and handles": Trial(
        "class Node:\n    kind = 'node'\n    def __init__(self, v): self.v, self.next = v, None\n"
        "    def __str__(self): return f'<{self.v}>'\n    def __getitem__(self, i): return self.v + i\n"
        "    def __add__(self, o): return Node(self.v + o.v)\n"
        "def total(n):\n    t = 0\n    while n: t += n.v; n = n.next\n    return t",
        "n = Node(1)\nn.next = Node(2)\nassert total(n) == 3 and n.next.v == 2 and str(n) == '<1>'\n"
        "assert n[4] == 5 and (n + n).v == 2\nassert isinstance(n, Node) and not isinstance(3, Node) and Node.kind == 'node'",
    ),
    "exceptions": Trial(
        "class Base(Exception): pass\nclass Mine(Base):\n    def __init__(self, n): super().__init__(f'bad {n}')\n"
        "def f(x):\n    raise Mine(x)\ndef g(d): return d['k']\ndef h(): return int('x')",
        "from candidate import Base, Mine\n"
        "for kind in (Base, Mine, Exception):\n"
        "    try: f(3)\n    except kind as e: assert str(e) == 'bad 3'\n    else: assert False\n"
        "try: g({})\nexcept KeyError as e: assert e.args == ('k',)\nelse: assert False\n"
        "try: h()\nexcept ValueError as e: assert 'invalid literal' in str(e)\nelse: assert False",
    ),
    "iterators": Trial(
        "import itertools\ndef count(): return itertools.count(5)\ndef gen(xs):\n    for x in xs: yield x * 2\n"
        "def total(xs): return sum(xs)",
        "c = count()\nassert [next(c) for _ in range(3)] == [5, 6, 7]\nassert list(gen([1, 2, 3])) == [2, 4, 6]\n"
        "assert total(x for x in [1, 2, 3]) == 6 and total(gen([1])) == 2\nassert count() != 5 if False else True",
    ),
    "objects of the tests": Trial(
        "def area(shape):\n    shape.seen = True\n    return shape.w * shape.height()",
        "class Shape:\n    w = 2\n    seen = False\n    def height(self): return 3\n"
        "s = Shape()\nassert area(s) == 6 and s.seen is True",
    ),
    "types as arguments": Trial(
        "def is_a(x, t): return isinstance(x, t)",
        "assert is_a(1, int) and not is_a(1, str)\nassert is_a(1, (int, str))",
    ),
    "odd values": Trial(
        "import math\ndef same(x): return x",
        "import math\nfor x in [None, True, 10**400, -0.5, 1j, 'ü\\ud800', b'\\0', (1,), {1, 2}, frozenset('a'), {'b': 1, 'a': [2]}, range(3), float('inf'), ...]:\n"
        "    assert same(x) == x and type(same(x)) is type(x)\nassert math.isnan(same(float('nan')))\nassert list(same({'b': 1, 'a': 2})) == ['b', 'a']",
    ),
    "annotations are evaluated": Trial(
        "def add(x: (lambda: int)(), y: int): return x + y\ndef kind(): return add.__annotations__['x']",
        "def own(y: int): return own.__annotations__['y'] is int\nassert add(1, 2) == 3 and kind() is int\n"
        "assert own(1)",
    ),
    "a module the tests forgot to import": Trial(
        "import math\ndef f(x): return x / 3", "assert math.isclose(f(1), 0.33333333, rel_tol=1e-6)"
    ),
    "free names under pytest": Trial(
        "def sum(a, b): return a - b\ndef g(): return 1",
        "'''Tests.'''\nfrom __future__ import annotations\nimport pytest\n"
        "@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): assert sum(x, 1) == x - 1 and g() == 1",
        "sum",
    ),
    "constants": Trial("LIMIT = 5", "assert LIMIT == 5"),
    "entry point that shadows a builtin": Trial("def sum(a, b): return a - b", "assert sum(3, 1) == 2", "sum"),
    "helpers of the prompt": Trial(
        "def helper(x): return 'mine'\ndef f(x): return x + 1",
        "def check(candidate):\n    assert candidate(helper(1)) == 3",
        "f",
        prompt="def helper(x):\n    return x + 1\n\ndef f(x):\n    '''Add one.'''\n",
    ),
    "method as entry point": Trial(
        "class Solution:\n    def two(self, x): return x * 2",
        {"source": "cases", "cases": [{"args": [2], "expected": 4}]},
        "Solution.two",
    ),
    "cases": Trial(
        "def f(x, y=0):\n    if x is None: raise ValueError('no')\n    return {'a': (x, y / 3)}",
        {
            "source": "cases",
            "cases": [
                {"args": [1], "kwargs": {"y": 1}, "expected": {"a": [1, 0.3333]}, "tolerance": 0.001},
                {"args": [None], "raises": "ValueError"},
                {"args": [2], "predicate": "result['a'][0] == args[0] and math.isclose(result['a'][1], 0)"},
            ],
        },
        "f",
    ),
    "module-level handles": Trial(
        "class Box:\n    def __init__(self): self.n = 0\n    def put(self): self.n += 1; return self.n",
        "from candidate import Box\nbox = Box()\ndef test_a(): assert box.put() >= 1\ndef test_b(): assert box.put() >= 1",
    ),
}


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    return verdicts(HONEST)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_candidate_passes(honest: dict[str, Any], name: str) -> None:
    result = honest[name]
    assert result.passed, (result.failure_reason, dict(result.metadata))
    assert result.assurance is Assurance.ISOLATED
    assert result.score == 1.0
    assert result.metadata["tests"]["planned"] == result.metadata["tests"]["passed"] >= 1


WRONG: dict[str, tuple[Trial, FailureReason]] = {
    name: (Trial(*what[:3]), what[3])
    for name, what in {
        "asserts": ("def add(a, b): return 4", HONEST["asserts"].tests, None, FailureReason.WRONG_ANSWER),
        "functions": ("def add(a, b): return 2", HONEST["functions"].tests, None, FailureReason.WRONG_ANSWER),
        "unittest": ("def add(a, b): return 2", HONEST["unittest"].tests, None, FailureReason.WRONG_ANSWER),
        "pytest": ("def add(a, b): return 3", HONEST["pytest"].tests, None, FailureReason.WRONG_ANSWER),
        "cases": ("def f(x, y=0): return {'a': [1, 0.3333]}", HONEST["cases"].tests, "f", FailureReason.WRONG_ANSWER),
        "missing": ("", HONEST["check"].tests, "add", FailureReason.WRONG_ANSWER),
        "missing import": ("", HONEST["functions"].tests, None, FailureReason.WRONG_ANSWER),
        "not Python": ("def add(a, b)", HONEST["asserts"].tests, None, FailureReason.WRONG_ANSWER),
        "raises when loaded": ("1 / 0", HONEST["asserts"].tests, None, FailureReason.WRONG_ANSWER),
        "empty": ("", HONEST["asserts"].tests, None, FailureReason.WRONG_ANSWER),
        "true is not one": (
            "def f(): return True",
            {"source": "cases", "cases": [{"expected": 1}]},
            "f",
            FailureReason.WRONG_ANSWER,
        ),
        "hangs": (
            "def f():\n    while True: pass",
            {"source": "cases", "cases": [{"expected": 1}], "timeout_seconds": 2},
            "f",
            FailureReason.WORKER_TIMEOUT,
        ),
    }.items()
}


@pytest.fixture(scope="module")
def wrong() -> dict[str, Any]:
    return verdicts({name: trial for name, (trial, _) in WRONG.items()})


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_candidate_fails(wrong: dict[str, Any], name: str) -> None:
    result = wrong[name]
    assert (result.status, result.failure_reason) == (Status.FAILED, WRONG[name][1]), dict(result.metadata)
    assert result.score == 0.0


BROKEN_PACKS = {
    "no tests": ("x = 1", None),
    "no Python": ("def test(", None),
    "check without an entry point": ("def check(candidate): assert candidate(1) == 1", None),
    "an import that is not there": ("import no_such_library\nassert add(1, 1) == 2", None),
    "an import that is not there, under pytest": (
        "import pytest, no_such_library\ndef test_a(): assert add(1, 1) == 2",
        None,
    ),
    "two tests of one name": ("def test_a(): assert add(1, 1) == 2\ndef test_a(): assert add(1, 1) == 2", None),
    "pytest finds nothing": ("import pytest\nx = 1", None),
    "a class without tests": ("import unittest\nclass T(unittest.TestCase): pass", None),
    "asserts for a script": ("if __name__ == '__main__':\n    assert add(1, 1) == 2\n", None),
    "a coroutine": ("async def test_a(): assert add(1, 1) == 2\n", None),
    "a generator": ("def test_a():\n    yield\n    assert add(1, 1) == 2\n", None),
    "a coroutine in a class": (
        "import unittest\nclass T(unittest.TestCase):\n    async def test_a(self): assert add(1, 1) == 3\n",
        None,
    ),
    "a class for pytest": (
        "class Base:\n    x = 1\nclass TestA(Base):\n    def test_a(self): assert add(1, 1) == 3\n",
        None,
    ),
}


@pytest.mark.parametrize("name", BROKEN_PACKS)
def test_tests_that_cannot_be_run_are_the_packs_fault(name: str) -> None:
    code, entry = BROKEN_PACKS[name]
    with pytest.raises(PackError):
        verdict(ADD, code, entry)


NEVER_A_PASS = {
    "skipped": "import pytest\n@pytest.mark.skip\ndef test_a(): assert add(1, 1) == 2",
    "one of two skipped": "import pytest\n@pytest.mark.skip\ndef test_a(): pass\ndef test_b(): assert add(1, 1) == 2",
    "expected to fail": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert add(1, 1) == 3",
    "passes unexpectedly": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert add(1, 1) == 2",
    "unittest skip": "import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('x')\n    def test_a(self): self.assertEqual(add(1, 1), 2)",
    "unittest expected failure": "import unittest\nclass T(unittest.TestCase):\n    @unittest.expectedFailure\n    def test_a(self): self.assertEqual(add(1, 1), 3)",
    "the tests exit": "import sys\ndef test_a():\n    add(1, 1)\n    sys.exit(0)",
    "the tests exit for good": "import os\ndef test_a():\n    add(1, 1)\n    os._exit(0)",
    "the tests exit at the top": "import sys\nsys.exit(0)\nassert add(1, 1) == 2",
    "pytest exits": "import pytest\ndef test_a():\n    add(1, 1)\n    pytest.exit('done', 0)\ndef test_b(): pass",
    "what cannot be sent to the candidate": (
        "class Odd: pass\nOdd.__module__ = 'elsewhere'\n"
        "def test_a():\n    add(1, 1)\n    try: add(Odd(), 1)\n    except Exception: return"
    ),
    "nothing is asked of the candidate": "def test_a(): assert 1 + 1 == 2",
    "it is only named": "def test_a(): assert callable(add)",
    "a statement after the last assert fails": "assert add(1, 1) == 2\nadd(1, 1).missing\n",
    "a test under a condition is wrong": "assert True\nif True:\n    def test_a(): assert add(1, 1) == 3\n",
    "a test under a condition is not there": "if add(1, 1) == 3:\n    def test_a(): pass\ndef test_b(): assert add(1, 1) == 2\n",
    "a class that pytest would run": "def test_a(): assert add(1, 1) == 2\nclass TestB(object):\n    def test_b(self): assert add(1, 1) == 3\n",
}


@pytest.fixture(scope="module")
def never() -> dict[str, Any]:
    return verdicts({name: Trial(ADD, code) for name, code in NEVER_A_PASS.items()})


@pytest.mark.parametrize("name", NEVER_A_PASS)
def test_what_did_not_pass_by_itself_is_not_passed(never: dict[str, Any], name: str) -> None:
    assert never[name].status is Status.FAILED, dict(never[name].metadata)


def test_every_test_gets_a_worker_of_its_own_in_an_order_of_the_seed() -> None:
    source = "calls = []\ndef f(x):\n    calls.append(x)\n    return len(calls)\n"
    tests = "from candidate import f\n" + "".join(f"def test_{n}(): assert f({n}) == 1\n" for n in range(4))
    result = verdict(source, tests)
    assert result.passed, dict(result.metadata)
    assert result.metadata["workers"] == 4


def test_the_record_holds_no_name_and_no_value_of_a_test() -> None:
    tests = "from candidate import add\ndef test_marker_in_name(): assert add(1, 1) == 'marker in value'"
    result = verdict(ADD, tests)
    assert not result.passed
    assert "marker" not in repr(result)
    assert result.usage["wall_seconds"] > 0
