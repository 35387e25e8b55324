"""Imported code in real rooms: right programs pass, wrong ones and cheats do not, in every form that tests come in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_public_benchmarks import cheats_for
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.imports import imported, jsonl
from tests.unit.importers.test_code_formats import CHECKED, LOOSE, METHOD, PLUS, PROBLEM

from securebench.importers.admission import admit

ADD = "a, b = map(int, input().split())\nprint(a + b)\n"
YES = PROBLEM | {
    "question_id": "yes",
    "public_test_cases": "[]",
    "private_test_cases": json.dumps([{"input": "1\n", "output": "YES\n", "testtype": "stdin"}]),
}


@pytest.fixture(autouse=True)
def _sandboxes() -> None:
    need_bubblewrap()


def test_references_of_every_form_of_evalplus_pass(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        PLUS,
        PLUS | {"task_id": "Mine/2", "test": CHECKED, "prompt": "def f(x):\n", "entry_point": "f"}
        | {"canonical_solution": "    return x + 0.2\n"},
        {
            "task_id": 3,
            "prompt": "Twice it.",
            "code": "def twice(x): return 2 * x",
            "test_list": ["assert twice(1) == 2"],
            "test": LOOSE,
        },
    ]  # fmt: skip
    pack, report = imported(tmp_path, "evalplus", rows)
    assert report.missing == 0
    admission = admit(pack.directory, mutants=2)
    assert [(row.id, row.reference, row.admitted) for row in admission.rows] == [
        ("Mine/1", "passed", True),
        ("Mine/2", "passed", True),
        ("Mbpp/3", "passed", True),
    ]
    assert admission.counts["mutants"] == admission.counts["mutants_noticed"] > 0


def test_programs_and_methods_are_judged_and_cheats_score_nothing(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "livecodebench", [PROBLEM, METHOD])
    method = "class Solution:\n    def add(self, xs, y):\n        return {}\n"
    right = [("abc_a", ADD), ("42", method.format("sum(xs) + y"))]
    wrong = [("abc_a", ADD.replace("+", "-")), ("42", method.format("len(xs) + y"))]
    knowing = [("abc_a", "print(3)\n"), ("42", method.format("6"))]  # the public tests, which agents see
    cheats = [("42", f"{source}\nclass Solution: add = staticmethod(add)\n") for source in _cheats()]
    for name, given, passed in (("right", right, 2), ("wrong", [*wrong, *knowing, *cheats], 0)):
        file = jsonl(tmp_path / "samples.jsonl", [{"task_id": task, "solution": text} for task, text in given])
        done = securebench("grade", pack.directory, file, "-o", tmp_path / name, "--json", "--workers", "2")
        assert done.code == 0, done.err
        assert (done.json["passed"], done.json["assurance"]) == (passed, {"isolated": len(given)})


def _cheats() -> list[str]:
    return list(cheats_for("add").values())[:10]


def test_rows_without_a_reference_are_tried_too(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "livecodebench", [PROBLEM, YES])
    first, second = admit(pack.directory).rows
    assert (first.reference, first.admitted) == ("absent", True)
    assert second.without_work == ("always prints 'YES'",)
