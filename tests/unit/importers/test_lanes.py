"""What a source keeps from those who answer stays away from them: a marker in every such field is in nothing they see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.harbor_tasks import harbor, lay, terminal_bench
from tests.imports import imported
from tests.unit.importers.test_code_formats import METHOD, PLUS, PROBLEM, SQUARE, TWICE, packed

from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack
from securebench.importers.registry import FORMATS
from securebench.resources import Component

MARK = "zyxmarker"
ROWS: dict[str, list[dict[str, Any]]] = {
    "humaneval": [
        TWICE | {"canonical_solution": f"    return 2 * x  # {MARK}\n", "test": f"{TWICE['test']}# {MARK}\n"},
    ],
    "mbpp": [
        SQUARE | {
            "code": f"{SQUARE['code']}\n# {MARK}",
            "test_list": ["assert square(3) == 9", f"assert square({len(MARK)}) == 81  # {MARK}"],
            "challenge_test_list": [f"assert {MARK}"],
            "test_setup_code": f"x = '{MARK}'",
        },
    ],
    "evalplus": [
        PLUS | {"canonical_solution": f"    {MARK} = sum(xs)\n    return {MARK}\n", "plus_input": [[[1]], [[MARK]]]},
        PLUS | {"task_id": "b", "contract": f"assert {MARK}"},
    ],
    "livecodebench": [
        PROBLEM | {"private_test_cases": packed([{"input": MARK, "output": MARK, "testtype": "stdin"}])},
        METHOD | {"private_test_cases": json.dumps([{"input": "[]\n1", "output": f'"{MARK}"', "testtype": "functional"}])},
    ],
    "gsm8k": [{"question": "How many?", "answer": f"{MARK} {MARK}\n#### 7"}],
    "math": [{"problem": "How many?", "solution": f"{MARK} \\boxed{{{MARK}}}"}, {"problem": "b", "answer": MARK}],
    "mmlu": [{"question": "Which?", "choices": ["a", "b"], "answer": 1, "cot_content": MARK}],
    "gpqa": [
        {"Question": "Which?", "Correct Answer": "a", "Explanation": MARK, "Pre-Revision Correct Answer": MARK}
        | {f"Incorrect Answer {n}": f"wrong {n}" for n in (1, 2, 3)},
    ],
    "simpleqa": [{"problem": "Who?", "answer": MARK, "metadata": MARK, "answer_type": MARK, "urls": MARK}],
    "inspect": [{"input": "Who?", "target": MARK, "metadata": {"solution": MARK}}],
    "jsonl": [{"q": "Who?", "a": MARK, "notes": MARK}],
}  # fmt: skip
MAPPING = """\
family: short_answer
input: {question: {column: q}}
eval: {accepted_answers: {columns: [a]}, author_notes: {column: notes}}
"""
DIRECTORIES = {"harbor": harbor("base:1"), "terminal-bench": terminal_bench("base:1")}
PRIVATE = ("tests/", "solution", "run-tests.sh")
PATCH = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+{1}\n"


def test_every_format_is_tried() -> None:
    assert {*ROWS, *DIRECTORIES, "swebench"} == set(FORMATS)


@pytest.mark.parametrize("name", ROWS)
def test_marker_is_in_nothing_that_agents_see(tmp_path: Path, name: str) -> None:
    pack, report = imported(tmp_path, name, ROWS[name], mapping=MAPPING if name == "jsonl" else None)
    assert report.missing == 0
    check_views(pack)


def check_views(pack: BenchmarkPack) -> None:
    kept = 0
    for task in compile_benchmark_pack(pack):
        agent, worker = task.view_for(Component.AGENT).values(), task.view_for(Component.WORKER).values()
        for seen in (task.agent_payload(), task.public_payload(), agent, worker, task.id):
            assert MARK not in json.dumps(seen)
        kept += MARK in json.dumps(task.hidden_payload()) or MARK in json.dumps(task.evaluation_payload())
    assert kept  # the control: it is there, where it belongs


def test_marker_of_a_patch_and_its_tests_is_in_nothing_that_agents_see(tmp_path: Path) -> None:
    row = {
        "instance_id": "a__b-1",
        "repo": "a/b",
        "base_commit": "0" * 40,
        "problem_statement": "It is wrong.",
        "patch": PATCH.format(f"{MARK}.py", MARK),
        "test_patch": PATCH.format(f"test_{MARK}.py", MARK),
        "FAIL_TO_PASS": [f"test_{MARK}.py::test_{MARK}"],
        "PASS_TO_PASS": [f"test_{MARK}.py::test_b", MARK],
    } | dict.fromkeys(("hints_text", "created_at", "environment_setup_commit", "solution", "metadata", "url"), MARK)
    pack, report = imported(tmp_path, "swebench", [row], **{"image-template": "i"})
    assert report.missing == 0
    check_views(pack)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_marker_in_tests_and_solution_is_in_no_file_that_agents_get(tmp_path: Path, name: str) -> None:
    files = {
        path: f"{text}\n# {MARK}\n" if path.startswith(PRIVATE) else text for path, text in DIRECTORIES[name].items()
    }
    lay(tmp_path / "tasks/it", files | {f"tests/{MARK}.txt": MARK, f"solution/{MARK}.txt": MARK})
    pack, report = imported(tmp_path, name, tmp_path / "tasks")
    assert report.missing == 0
    check_views(pack)
    assert [path for path in (tmp_path / "pack/assets").rglob("*") if MARK in str(path) or holds(path)] == []
    assert any(holds(path) for path in (tmp_path / "pack/hidden").rglob("*"))  # the control


def holds(path: Path) -> bool:
    return path.is_file() and MARK.encode() in path.read_bytes()
