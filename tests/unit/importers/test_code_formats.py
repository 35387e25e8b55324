"""Formats of code: tests and solutions in their lanes, and the pickles of strangers never loaded."""

from __future__ import annotations

import ast
import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.imports import imported, parquet, reasons, rows_of

from securebench.errors import ConfigError
from securebench.importers.base import CannotConvert
from securebench.importers.pickled import NotOneText, pickled_text
from securebench.importers.python_tests import inline_tests

TWICE = {
    "task_id": "Mine/0",
    "prompt": 'def twice(x):\n    """Twice x.\n    >>> twice(2)\n    4\n    """\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n    assert candidate(0) == 0\n",
}
SQUARE = {
    "task_id": 11,
    "text": "Write a function to square a number.",
    "code": "def helper(x):\r\n    return x\r\n\r\ndef square(x, y=2):\r\n    return helper(x) ** y",
    "test_list": ["assert square(3) == 9", "assert square(-2) == 4"],
    "test_setup_code": "import math",
    "challenge_test_list": [],
}


@pytest.mark.parametrize("write", ["jsonl", "parquet"])
def test_humaneval(tmp_path: Path, write: str) -> None:
    source: Any = [TWICE] if write == "jsonl" else parquet(tmp_path / "x.parquet", [TWICE])
    pack, _ = imported(tmp_path, "humaneval", source)
    (row,) = rows_of(pack)
    assert row["id"] == "Mine/0"
    assert row["input"] == {"prompt": TWICE["prompt"], "language": "python", "entry_point": "twice"}
    assert row["eval"]["tests"] == {"source": "inline", "code": TWICE["test"]}
    assert row["eval"]["canonical_solution"] == TWICE["canonical_solution"]


def test_humaneval_rows_that_are_none(tmp_path: Path) -> None:
    broken = [
        TWICE | {"test": "def check(:"},
        {key: value for key, value in TWICE.items() if key != "canonical_solution"},
        TWICE | {"entry_point": "two words"},
        TWICE | {"prompt": 7},
        TWICE | {"test": "def check(candidate):\n    candidate(1)\n"},
    ]
    pack, report = imported(tmp_path, "humaneval", [TWICE, *broken])
    assert len(pack) == 1
    first, second, third, fourth, fifth = reasons(report)
    assert first == "2: its tests are no Python, or too long to be looked at"
    assert second == "3: canonical_solution is missing"
    assert third.startswith("4: input.entry_point: ")
    assert fourth == "5: prompt is not text"
    assert fifth == "6: its tests assert nothing"


def test_mbpp(tmp_path: Path) -> None:
    others = [SQUARE | {"task_id": 12, "test_list": [test]} for test in ("assert cube(1) == 1", "square(1)")]
    pack, report = imported(tmp_path, "mbpp", [SQUARE, *others])
    (row,) = rows_of(pack)
    assert row["id"] == "Mbpp/11"
    assert row["input"]["entry_point"] == "square"
    assert "assert square(3) == 9" in row["input"]["prompt"]
    assert "assert square(-2) == 4" not in row["input"]["prompt"]
    assert row["eval"]["tests"]["code"] == "import math\nassert square(3) == 9\nassert square(-2) == 4\n"
    assert row["eval"]["reference_solution"] == SQUARE["code"]
    assert reasons(report) == ["2: no test calls what the solution defines", "3: its tests assert nothing"]


def test_sanitized_mbpp(tmp_path: Path) -> None:
    row = {
        "source_file": "x",
        "task_id": 2,
        "prompt": "Square it.",
        "code": SQUARE["code"],
        "test_imports": ["import math"],
        "test_list": SQUARE["test_list"],
    }
    (tmp_path / "sanitized.json").write_text(json.dumps([row]))
    pack, _ = imported(tmp_path, "mbpp", tmp_path / "sanitized.json")
    (made,) = rows_of(pack)
    assert made["input"]["prompt"].startswith("Square it.")
    assert made["eval"]["tests"]["code"].startswith("import math\nassert square")


PLUS = {
    "task_id": "Mine/1",
    "prompt": "from typing import List\n\n\ndef total(xs: List[float]) -> float:\n    ''' The sum. '''\n",
    "entry_point": "total",
    "canonical_solution": "    return float(sum(xs))\n",
    "base_input": [[[1, 2]], [[]]],
    "plus_input": [[[0.1, 0.2]]],
    "atol": 0,
}


def test_evalplus_with_inputs_asks_the_reference_in_the_test_room(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "evalplus", [PLUS])
    (row,) = rows_of(pack)
    code = row["eval"]["tests"]["code"]
    names: dict[str, Any] = {}
    exec(code, names)
    names["check"](lambda xs: sum(xs) + 1e-9)
    with pytest.raises(AssertionError):
        names["check"](lambda xs: sum(xs) + 1e-3)
    with pytest.raises(AssertionError):
        names["check"](lambda xs: "3.0")
    assert "total" not in names  # the candidate's name is nobody else's
    assert "plus" not in json.dumps(row["input"])


def test_evalplus_takes_no_number_for_an_endless_one(tmp_path: Path) -> None:
    row = PLUS | {"canonical_solution": "    return float('inf')\n", "atol": 1e-6}
    pack, _ = imported(tmp_path, "evalplus", [row])
    names: dict[str, Any] = {}
    exec(rows_of(pack)[0]["eval"]["tests"]["code"], names)
    names["check"](lambda xs: float("inf"))
    for wrong in (7, float("-inf"), float("nan")):
        with pytest.raises(AssertionError):
            names["check"](lambda xs, wrong=wrong: wrong)


def test_evalplus_polynomials_have_more_than_one_root(tmp_path: Path) -> None:
    row = PLUS | {
        "prompt": "def find_zero(xs: list):\n",
        "entry_point": "find_zero",
        "canonical_solution": "    return 1.0\n",
        "base_input": [[[-1, 0, 1]]],
        "plus_input": [],
    }
    pack, _ = imported(tmp_path, "evalplus", [row])
    names: dict[str, Any] = {}
    exec(rows_of(pack)[0]["eval"]["tests"]["code"], names)
    names["check"](lambda xs: -1.0)
    with pytest.raises(AssertionError):
        names["check"](lambda xs: 0.5)


def test_evalplus_inputs_that_lost_their_types_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    rows = [PLUS, PLUS | {"task_id": "Mbpp/2"}, PLUS | {"task_id": 3}]
    pack, report = imported(tmp_path, "evalplus", rows)
    assert pack.ids == ("Mine/1",)
    assert reasons(report) == ["2: its inputs have lost their types", "3: its inputs have lost their types"]
    pack, report = imported(tmp_path, "evalplus", rows, target="all", inputs="as-written")
    assert (pack.ids, report.missing) == (("Mine/1", "Mbpp/2", "Mbpp/3"), 0)
    assert pack.manifest.source is not None
    assert pack.manifest.source.settings == {"inputs": "as-written"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"base_input": [], "plus_input": []}, "has no inputs"),
        ({"base_input": {"a": 1}}, "base_input is not a list of lists of arguments"),
        ({"atol": "much"}, "atol is no tolerance"),
        ({"canonical_solution": "    return ("}, "its prompt and solution are no Python that defines the entry point"),
        ({"canonical_solution": "    global x\n    x = 1\n"}, "its solution keeps something in global variables"),
    ],
)
def test_evalplus_rows_that_are_none(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    _, report = imported(tmp_path, "evalplus", [PLUS, PLUS | change])
    assert reasons(report) == [f"2: {reason}"]


WITH_NUMPY = """\
import numpy as np

def is_floats(x):
    return isinstance(x, float) or isinstance(x, np.ndarray)

def assertion(out, exp, atol):
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if out != exp and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp
"""
CHECKED = WITH_NUMPY + "\ndef check(candidate):\n    assertion(candidate(0.1), 0.3, 0)\n"
LOOSE = WITH_NUMPY + "\ninputs = [[1], [2]]\nfor one in inputs:\n    assertion(twice(*one), 2 * one[0], 0)\n"


def test_numpy_that_only_compares_is_done_without() -> None:
    code = inline_tests(CHECKED, "f")
    assert "import" not in code
    names: dict[str, Any] = {}
    exec(code, names)
    names["check"](lambda x: 0.30000000001)
    for wrong in (0.31, "0.3", [0.3], None, float("nan")):
        with pytest.raises(AssertionError):
            names["check"](lambda x, wrong=wrong: wrong)


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-9], True),
        ((1.0,), [1.0], True),
        ([1.0], [1.0, 1.0], False),
        ([[1.0], [2.0]], [[1.0], [3.0]], False),
        (float("inf"), float("inf"), True),
        (True, 1.0, True),
        (1.0, float("inf"), False),
        (float("-inf"), float("inf"), False),
    ],
)
def test_stand_in_compares_like_numpy(found: Any, expected: Any, same: bool) -> None:
    names: dict[str, Any] = {}
    exec(inline_tests(CHECKED, "f"), names)
    assert names["np"].allclose(found, expected) is same
    if same:
        names["np"].testing.assert_allclose(found, expected, rtol=1e-6)


def test_tests_that_want_more_of_numpy_are_left_out_unless_an_image_has_it() -> None:
    code = CHECKED.replace("np.allclose", "np.linalg.norm")
    with pytest.raises(CannotConvert, match="its tests need NumPy: linalg"):
        inline_tests(code, "f")
    assert inline_tests(code, "f", image="with-numpy") == code
    for other in (
        "from numpy import allclose\nassert f() == 1\n",
        "import numpy as np\nx = np\nassert f() == x\n",
        "import numpy as np\nassert np.testing.assert_array_equal(f(), 1) is None\n",
    ):
        with pytest.raises(CannotConvert, match="need NumPy"):
            inline_tests(other, "f")


@pytest.mark.parametrize("entry_point", ["a b", "", "class", "f()"])
def test_loose_statements_about_what_is_no_name_are_left_out(entry_point: str) -> None:
    with pytest.raises(CannotConvert, match="entry_point is no name"):
        inline_tests("def one():\n    assert f() == 1\none()\n", entry_point)


def test_loose_statements_become_a_check() -> None:
    code = inline_tests(LOOSE, "twice")
    names: dict[str, Any] = {}
    exec(code, names)
    names["check"](lambda x: 2 * x)
    with pytest.raises(AssertionError):
        names["check"](lambda x: x)
    with pytest.raises(CannotConvert, match="assert nothing"):
        inline_tests("print(twice(1))\n", "twice")


def test_tests_that_will_do_stay_as_they_are() -> None:
    for code in (TWICE["test"], "assert f(1) == 2  # a comment\n", "def test_a():\n    assert f() == 1\n"):
        assert inline_tests(code, "f") == code


def test_mbpp_plus_with_whole_tests(tmp_path: Path) -> None:
    row = {
        "task_id": 3,
        "prompt": "Twice it.",
        "code": "def twice(x): return 2 * x",
        "test_list": ["assert twice(1) == 2"],
        "test": LOOSE,
    }
    pack, _ = imported(tmp_path, "evalplus", [row])
    (made,) = rows_of(pack)
    assert (made["id"], made["input"]["entry_point"]) == ("Mbpp/3", "twice")
    assert ast.parse(made["eval"]["tests"]["code"])
    assert made["eval"]["reference_solution"] == row["code"]


def packed(tests: Any, protocol: int | None = None) -> str:
    text = json.dumps(tests)
    data = text.encode() if protocol is None else pickle.dumps(text, protocol)
    return base64.b64encode(zlib.compress(data)).decode()


STDIN = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
MORE = [{"input": "4 5\n", "output": "9\n", "testtype": "stdin"}]
PROBLEM = {
    "question_id": "abc_a",
    "question_content": "Add two numbers.",
    "platform": "somewhere",
    "difficulty": "easy",
    "starter_code": "",
    "public_test_cases": json.dumps(STDIN),
    "private_test_cases": packed(MORE),
    "metadata": "{}",
}
METHOD = PROBLEM | {
    "question_id": "42",
    "starter_code": "class Solution:\n    def add(self, xs: List[int], y: int) -> int:\n        ",
    "public_test_cases": json.dumps([{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]),
    "private_test_cases": packed([{"input": "[]\n0", "output": "0", "testtype": "functional"}], 4),
    "metadata": json.dumps({"func_name": "add"}),
}


def test_livecodebench(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "livecodebench", [PROBLEM, METHOD], seconds="4")
    program, method = rows_of(pack)
    assert program["eval"]["tests"] == {
        "source": "io",
        "run": ["python3", "candidate.py"],
        "compare": "tokens",
        "cases": [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "4 5\n", "stdout": "9\n"}],
        "timeout_seconds": 4.0,
    }
    assert program["metadata"]["tags"] == ["somewhere", "easy"]
    assert "standard input" in program["input"]["prompt"]
    assert method["input"]["entry_point"] == "Solution.add"
    assert method["input"]["starter_code"] == METHOD["starter_code"]
    assert method["eval"]["tests"]["cases"] == [
        {"args": [[1, 2], 3], "expected": 6},
        {"args": [[], 0], "expected": 0},
    ]


class Dangerous:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("/tmp/securebench-was-unpickled"),))


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    marker = Path("/tmp/securebench-was-unpickled")
    bomb = base64.b64encode(zlib.compress(pickle.dumps(Dangerous()))).decode()
    listed = base64.b64encode(zlib.compress(pickle.dumps(MORE))).decode()
    rows = [PROBLEM, *(PROBLEM | {"private_test_cases": text} for text in (bomb, listed))]
    pack, report = imported(tmp_path, "livecodebench", rows)
    assert len(pack) == 1
    assert reasons(report) == [f"{line}: private_test_cases is pickled, and pickles are not loaded" for line in (2, 3)]
    assert not marker.exists()
    pickle.loads(pickle.dumps(Dangerous()))  # the control: whoever loads it runs it
    assert marker.exists()
    marker.unlink()


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
def test_livecodebench_wants_seconds_that_end(tmp_path: Path, seconds: str) -> None:
    with pytest.raises(ConfigError, match=r"^seconds is a number of seconds, not "):
        imported(tmp_path, "livecodebench", [PROBLEM], seconds=seconds)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"private_test_cases": "not packed"}, "private_test_cases is neither JSON nor packed"),
        ({"private_test_cases": packed(MORE)[:-8]}, "private_test_cases is cut off, or larger than 268435456 bytes"),
        ({"private_test_cases": "[{]"}, "private_test_cases is no JSON"),
        ({"private_test_cases": "[7]"}, "private_test_cases is not a list of tests"),
        ({"private_test_cases": None}, "has no private tests"),
        ({"private_test_cases": "[]"}, "has no private tests"),
        ({"private_test_cases": METHOD["private_test_cases"]}, "its tests are neither all stdin nor all functional"),
        ({"public_test_cases": '[{"testtype": "stdin", "input": 7}]'}, "a test has no input"),
    ],
)
def test_livecodebench_rows_that_are_none(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    _, report = imported(tmp_path, "livecodebench", [PROBLEM, PROBLEM | change])
    assert reasons(report) == [f"2: {reason}"]


def test_methods_need_their_name(tmp_path: Path) -> None:
    rows = [PROBLEM, METHOD | {"metadata": "{}"}, METHOD | {"metadata": '{"func_name": "a b"}'}]
    _, report = imported(tmp_path, "livecodebench", rows)
    assert reasons(report) == ["2: metadata names no function", "3: metadata names no function"]


@given(st.text(), st.sampled_from([2, 3, 4, 5]))
def test_pickled_texts_are_read(text: str, protocol: int) -> None:
    try:
        data = pickle.dumps(text.encode("utf-8").decode(), protocol)
    except UnicodeError:
        return
    assert pickled_text(data) == text


@pytest.mark.parametrize("size", [255, 256, 65_535, 70_000, 200_000])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_long_pickled_texts_are_read(size: int, protocol: int) -> None:
    assert pickled_text(pickle.dumps("é" * size, protocol)) == "é" * size


@given(st.one_of(st.binary(), st.binary().map(lambda data: b"\x80\x04" + data)))
def test_any_bytes_are_a_text_or_refused(data: bytes) -> None:
    try:
        text = pickled_text(data)
    except NotOneText:
        return
    assert text.encode() in data


@pytest.mark.parametrize("value", [7, ["a"], b"a", None, ("a",), {"a": 1}])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_other_pickles_are_refused(value: Any, protocol: int) -> None:
    with pytest.raises(NotOneText):
        pickled_text(pickle.dumps(value, protocol))
