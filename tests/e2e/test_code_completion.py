"""`code_completion` from tester file to record, through the command line."""

from __future__ import annotations

from typing import Any

import pytest

SAY = ["/usr/bin/python3", "-c", "import json; print(json.load(open('task.json'))['metadata']['say'])"]
ADD = "def add(a, b): return a + b"
TESTS = {"source": "inline", "code": "from candidate import add\ndef test_secret_name(): assert add(20, 21) == 41"}
ALWAYS = "class A:\n    def __eq__(self, other): return True\ndef add(a, b): return A()"


def row(name: str, say: str, tests: Any, **more: Any) -> dict[str, Any]:
    public = {"prompt": "Write add(a, b).", "language": "python", "entry_point": "add"}
    made = {"id": name, "family": "code_completion", "input": public | more.pop("input", {}), "eval": {"tests": tests}}
    return made | {"metadata": {"say": say}} | more


@pytest.fixture
def records(bench: Any) -> dict[str, Any]:
    io = {"source": "io", "run": ["python3", "candidate.py"], "cases": [{"stdin": "1 2", "stdout": "3\n"}]}
    cases = {"source": "cases", "cases": [{"args": [1, 2], "expected": 3}, {"args": [1, None], "raises": "TypeError"}]}
    rows = [
        row("honest", ADD, TESTS),
        row("cheat", ALWAYS, TESTS),
        row("crash", "import os\nos._exit(0)", TESTS),
        row("empty", "", TESTS),
        row("cases", ADD, cases),
        row("io", "print(sum(map(int, input().split())))", io, input={"entry_point": None}),
        row("file", ADD, {"path": "test_add.py"}),
        row(
            "data",
            "def add(a, b): return a + int(open('number.txt').read())",
            {"source": "inline", "code": "assert add(1, 0) == 8\nassert open('number.txt').read() == '7'"},
            assets=[{"path": "number.txt"}],
        ),
    ]
    for made in rows:
        made["input"] = {key: value for key, value in made["input"].items() if value is not None}
    work = bench(rows, SAY)
    for name, text in {
        "hidden/test_add.py": "import pytest\nfrom candidate import add\n@pytest.mark.parametrize('x', [1, 2])\ndef test_it(x): assert add(x, x) == 2 * x\n",
        "assets/number.txt": "7",
    }.items():
        path = work.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    done = work.run()
    assert done.code == 0, done.err
    assert done.json["errors"] == 0, work.records()
    return {record["task_id"]: record for record in work.records()}


def test_a_run_with_honest_and_cheating_candidates(records: dict[str, Any]) -> None:
    passed = {name for name, record in records.items() if record["passed"]}
    assert passed == {"honest", "cases", "io", "file", "data"}, records
    assert {record["assurance"] for record in records.values() if record["failure_reason"] != "no_candidate"} == {
        "isolated"
    }
    assert records["crash"]["failure_reason"] == "worker_crashed"
    assert records["cheat"]["failure_reason"] == "wrong_answer"
    assert "secret_name" not in repr(records["honest"])
