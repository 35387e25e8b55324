"""Cases drawn by chance and answered by the reference solution: knowing the written cases is not enough."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.e2e.workbench import Workbench, need_bubblewrap

from securebench.families.generated_cases import GeneratedCases, draw_calls

REFERENCE = (
    "def total(numbers, scale=1):\n    if not numbers:\n        raise ValueError\n    return sum(numbers) * scale\n"
)
GENERATE = {
    "count": 15,
    "args": [{"type": "list", "of": {"type": "int", "min": -9, "max": 9}, "max_length": 4}],
    "kwargs": {"scale": {"type": "choice", "values": [1, 2, 10]}},
}


def record(directory: Path, candidate: str, reference: str = REFERENCE) -> dict[str, Any]:
    need_bubblewrap()
    row = {
        "id": "total",
        "family": "code_completion",
        "input": {"prompt": "Add them up.", "language": "python", "entry_point": "total"},
        "eval": {
            "tests": {"source": "cases", "cases": [{"args": [[1, 2]], "expected": 3}], "generate": GENERATE},
            "reference_solution": reference,
        },
    }
    tester = {
        "schema_version": "0.3",
        "run": {"id": "generated", "output_dir": "out", "seed": 4},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "constant", "config": {"response": candidate}},
    }
    (directory / "manifest.yaml").write_text("id: generated\nversion: 1\n")
    (directory / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    (directory / "tester.yaml").write_text(json.dumps(tester))
    made = Workbench(directory)
    made.run()
    [found] = made.records()
    return found


def test_right_solution_passes_every_drawn_case(tmp_path: Path) -> None:
    other = (
        "def total(numbers, scale=1):\n    assert numbers or not numbers\n    if len(numbers) == 0: raise ValueError\n"
    )
    found = record(tmp_path, other + "    return sum(scale * n for n in numbers)\n")
    assert found["passed"], found
    assert found["verifier_metadata"]["tests"]["planned"] == 16


@pytest.mark.parametrize(
    "candidate",
    [
        "def total(numbers, scale=1):\n    return 3\n",
        "def total(numbers, scale=1):\n    return sum(numbers) * scale\n",
        "def total(numbers, scale=1):\n    if not numbers:\n        raise ValueError\n    return sum(numbers)\n",
    ],
    ids=["memorised", "does not raise", "ignores an argument"],
)
def test_solution_that_fits_only_the_written_case_fails(tmp_path: Path, candidate: str) -> None:
    found = record(tmp_path, candidate)
    assert (found["passed"], found["failure_reason"]) == (False, "wrong_answer")


@pytest.mark.parametrize("reference", ["def total(", "def total(*a, **k):\n    return {1, 2}\n"])
def test_reference_that_cannot_answer_is_the_packs_fault(tmp_path: Path, reference: str) -> None:
    found = record(tmp_path, REFERENCE, reference)
    assert (found["verification_status"], found["passed"]) == ("error", None)


def test_same_seed_draws_the_same_calls() -> None:
    generated = GeneratedCases.model_validate_json(json.dumps(GENERATE))
    assert draw_calls(generated, Random("x")) == draw_calls(generated, Random("x"))
    assert draw_calls(generated, Random("x")) != draw_calls(generated, Random("y"))
