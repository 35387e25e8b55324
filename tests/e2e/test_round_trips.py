"""What is exported is taken again: by `grade`, with the same verdicts, and by the real Inspect."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_grade import PREDICTION, PROMPT, Desk, done, square
from tests.e2e.workbench import need_bubblewrap, question, securebench

DOCUMENT = """\
diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1,3 +1,3 @@
 ```
-calc
+calc, which adds
 ```
"""
RETURNS = """\
diff --git a/note.txt b/note.txt
--- a/note.txt
+++ b/note.txt
@@ -1,2 +1,2 @@
 one\r
-two\r
+three\r
"""
LARGEST = (PROMPT + "    return x * x\n#").ljust(2**20, "x")
LONG = f"diff --git a/l b/l\nnew file mode 100644\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+{'x' * 2**21}\n"
READ_AND_PACK = """\
import sys
from inspect_ai.log import read_eval_log, write_eval_log

log = read_eval_log(sys.argv[1])
write_eval_log(log, sys.argv[2])
scores = {f"{one.id} {one.epoch}": one.scores["securebench"].as_float() for one in log.samples}
print(log.status, log.eval.task, log.eval.model, log.results.scores[0].metrics["accuracy"].value, scores)
"""


def need_inspect() -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        told = "inspect-ai is not installed (it is among the development packages)"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(told)


def exported(desk: Desk, style: str, name: str, *more: str) -> Path:
    path = desk.directory / name
    written = securebench("export", desk.output, "--format", style, "-o", path, *more)
    assert written.code == 0, written.err
    return path


def verdicts(desk: Desk, samples: Path) -> dict[tuple[str, int], str]:
    """Of grading these for the same pack."""
    again = Desk.__new__(Desk)
    again.directory, again.samples, again.output = desk.directory, samples, desk.directory / f"of-{samples.name}"
    graded = again.grade()
    assert graded.code == 0, graded.err
    return again.verdicts()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A run with programs and answers, right, wrong, and none."""
    need_bubblewrap()
    desk = Desk(tmp_path_factory.mktemp("answers"), [square("a"), square("x/b"), question(1)])
    desk.write(
        done("a", "    return x * x\n"),
        done("a", "    return x\n"),
        done("x/b", PROMPT + "    '''\n```\n'''\n    return x ** 2\n", "solution"),
        done("x/b", None),
        done("t1", "Answer: 41"),
        done("t1", "I think\nAnswer: 42"),
        done("a", "return x * x", "solution"),  # no program; read as a reply, it would be made one
        done("a", "```\n" + PROMPT + "    return x * x\n```\n", "solution"),
        done("a", LARGEST, "solution"),
    )
    assert desk.grade().code == 0
    assert desk.verdicts() == {
        ("a", 1): "passed",
        ("a", 2): "wrong_answer",
        ("x/b", 1): "passed",
        ("x/b", 2): "no_candidate",
        ("t1", 1): "wrong_answer",
        ("t1", 2): "passed",
        ("a", 3): "wrong_answer",
        ("a", 4): "wrong_answer",
        ("a", 5): "passed",
    }
    return desk


def test_predictions_are_graded_to_the_same_verdicts(tmp_path: Path) -> None:
    need_bubblewrap()
    row = {
        "family": "repo_patch",
        "input": {"repo": "calc", "base_commit": "0" * 40, "instructions": "add() subtracts."},
        "assets": [{"path": "calc"}],
        "eval": {
            "tests": {"source": "command", "command": ["python3", "-c", "import calc; assert calc.add(2, 3) == 5"]}
        },
    }
    desk = Desk(tmp_path, [{"id": name, **row} for name in ("calc__calc-1", "calc__calc-2")])
    (tmp_path / "assets" / "calc").mkdir(parents=True)
    (tmp_path / "assets" / "calc" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "assets" / "calc" / "README.md").write_text("```\ncalc\n```\n")
    (tmp_path / "assets" / "calc" / "note.txt").write_bytes(b"one\r\ntwo\r\n")
    given: list[tuple[str, Any]] = [
        ("calc__calc-1", PREDICTION + DOCUMENT + RETURNS + LONG),
        ("calc__calc-2", PREDICTION.replace("a + b", "a * b")),
        ("calc__calc-1", None),
        ("calc__calc-2", PREDICTION.removesuffix("\n")),
    ]
    desk.write(*[{"instance_id": name, "model_patch": patch, "model_name_or_path": "m"} for name, patch in given])
    assert desk.grade().code == 0
    first = desk.verdicts()
    assert first["calc__calc-1", 1] == first["calc__calc-2", 2] == "passed", first
    assert (first["calc__calc-2", 1], first["calc__calc-1", 2]) == ("tests_failed", "no_candidate")
    for attempt in ("1", "2"):
        path = exported(desk, "swebench", f"predictions-{attempt}.jsonl", "--attempt", attempt)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert {tuple(line) for line in lines} == {("instance_id", "model_name_or_path", "model_patch")}
        assert {line["model_name_or_path"] for line in lines} == {"m"}
        expected = {(task, 1): verdict for (task, number), verdict in first.items() if number == int(attempt)}
        assert verdicts(desk, path) == expected
    assert verdicts(desk, exported(desk, "inspect", "log.json")) == first
    assert verdicts(desk, exported(desk, "harbor", "job")) == first


def test_log_for_inspect_is_graded_to_the_same_verdicts(answers: Desk) -> None:
    assert verdicts(answers, exported(answers, "inspect", "log.json")) == answers.verdicts()


def test_job_for_harbor_is_graded_to_the_same_verdicts(answers: Desk) -> None:
    job = exported(answers, "harbor", "job")
    assert verdicts(answers, job) == answers.verdicts()
    for path in job.rglob("manifest.json"):
        path.unlink()
    refused = securebench("grade", answers.directory, job, "-o", answers.directory / "refused")
    assert refused.code == 2
    assert refused.err.count("no candidate among its artifacts: a code is looked for") == 1


def test_real_inspect_reads_the_log_and_what_it_packs_is_graded_to_the_same_verdicts(answers: Desk) -> None:
    need_inspect()
    log, packed = exported(answers, "inspect", "again.json"), answers.directory / "packed.eval"
    read = subprocess.run(
        [sys.executable, "-c", READ_AND_PACK, str(log), str(packed)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    scores = {"a 1": 1.0, "a 2": 0.0, "a 3": 0.0, "a 4": 0.0, "a 5": 1.0}
    scores |= {"x/b 1": 1.0, "x/b 2": 0.0, "t1 1": 0.0, "t1 2": 1.0}
    assert read.stdout.strip() == f"success graded samples {4 / 9} {scores}"
    assert packed.read_bytes().startswith(b"PK")
    assert verdicts(answers, packed) == answers.verdicts()
