"""`securebench grade`: candidates from files, through the real command line, in real sandboxes."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.crash.world import NOTHING, check_chain, leftovers_soon
from tests.e2e.test_judged_run import ROW as JUDGED
from tests.e2e.workbench import CLI, Finished, need_bubblewrap, question, securebench
from tests.unit.engine.test_processes import children

from securebench.testing.scripted_judge import honest, scripted_judge

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PROMPT = 'import math\n\n\ndef square(x):\n    """The square of x."""\n'


def square(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "family": "code_completion",
        "input": {"prompt": PROMPT, "language": "python", "entry_point": "square"},
        "eval": {"tests": {"source": "inline", "code": "def check(f):\n    assert f(3) == 9\n    assert f(-2) == 4\n"}},
    }


class Desk:
    """A pack, a file of samples, and where the records go."""

    def __init__(self, directory: Path, rows: list[dict[str, Any]]) -> None:
        self.directory = directory
        self.samples = directory / "samples.jsonl"
        self.output = directory / "out"
        (directory / "manifest.yaml").write_text("id: graded\nversion: 1\n")
        (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write(self, *samples: Any) -> Path:
        self.samples.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
        return self.samples

    def grade(self, *args: str | Path) -> Finished:
        return securebench("grade", self.directory, self.samples, "-o", self.output, "--json", *args)

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / "candidates.jsonl").read_bytes().splitlines()]

    def verdicts(self) -> dict[tuple[str, int], str]:
        return {
            (record["task_id"], record["attempt"]): record["failure_reason"] or record["verification_status"]
            for record in self.records()
        }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, [question(1), question(2), question(3)])


@pytest.fixture
def code(tmp_path: Path) -> Desk:
    need_bubblewrap()
    return Desk(tmp_path, [square("a"), square("b"), square("c")])


def done(task: str, text: str | None, key: str = "completion", **more: Any) -> dict[str, Any]:
    return {"task_id": task, key: text} | more


def test_samples_are_judged_recorded_sealed_and_judged_again(code: Desk) -> None:
    code.write(
        done("a", "    return x * x\n"),
        done("a", "    return x\n"),
        done("b", "def square(x):\n    return math.prod([x, x])\n"),
        done("a", PROMPT + "    return x ** 2\n", "solution", model="m", temperature=0.2),
        done("b", "    import os\n    os._exit(0)\n"),
        done("c", None),
    )
    graded = code.grade()
    assert graded.code == 0, graded.err
    assert code.verdicts() == {
        ("a", 1): "passed",
        ("a", 2): "wrong_answer",
        ("a", 3): "passed",
        ("b", 1): "passed",
        ("b", 2): "worker_crashed",
        ("c", 1): "no_candidate",
    }
    summary = graded.json
    assert (summary["planned"], summary["passed"], summary["failed"], summary["errors"]) == (6, 3, 3, 0)
    assert (summary["attempts"], summary["attempts_least"]) == (3, 1)
    assert summary["pass_at_k"] == {"1": pytest.approx((2 / 3 + 1 / 2 + 0) / 3)}
    assert (summary["harness"], summary["assurance"]) == ("samples", {"isolated": 5})
    records = {(record["task_id"], record["attempt"]): record for record in code.records()}
    assert records["b", 1]["candidate_text"].startswith("import math\ndef square")
    assert records["a", 3]["producer_metadata"]["line"] == 4
    assert records["a", 1]["producer_metadata"]["samples"] == summary["samples"]["digest"]
    verified = securebench("verify", code.output, "--json")
    assert verified.code == 0, verified.out
    regraded = securebench("regrade", code.output, "--pack", code.directory, "--json")
    assert regraded.code == 0, regraded.out
    assert regraded.json["counts"]["same"] == 5


def test_tampered_verdicts_are_found(desk: Desk) -> None:
    desk.write(done("t1", "Answer: 41"), done("t2", "Answer: 42"), done("t3", "Answer: 41"))
    desk.grade()
    path = desk.output / "candidates.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"failed"', b'"passed"', 1))
    assert securebench("verify", desk.output).code == 1


def test_task_without_a_sample_fails_and_stays_counted(desk: Desk) -> None:
    desk.write(done("t1", "Answer: 42"))
    graded = desk.grade()
    assert desk.verdicts() == {("t1", 1): "passed", ("t2", 1): "no_candidate", ("t3", 1): "no_candidate"}
    assert (graded.json["score"], graded.json["samples"]["tasks_without"]) == (pytest.approx(1 / 3), 2)
    shown = securebench("grade", desk.directory, desk.samples, "-o", desk.directory / "again", "--quiet")
    assert "Missing: 2 of 3 tasks have no sample and count as failed" in shown.out
    assert securebench("verify", desk.output).code == 0


def test_missing_tasks_are_left_out_only_on_request_and_loudly(desk: Desk) -> None:
    desk.write(done("t1", "Answer: 42"))
    graded = desk.grade("--ignore-missing")
    assert desk.verdicts() == {("t1", 1): "passed"}
    assert graded.json["filters"]["sampled"] is True
    assert graded.json["filtered"] == "1 of 3 tasks (only tasks that have a sample)"
    shown = securebench("grade", desk.directory, desk.samples, "-o", desk.directory / "again", "--ignore-missing")
    assert "WITHOUT MISSING TASKS: 2 tasks of the pack are not counted (--ignore-missing)" in shown.out
    assert securebench("verify", desk.output).code == 0
    changed = desk.grade("--resume")
    assert changed.code == 2
    assert "filters.sampled: true → null" in changed.err


def test_filters_choose_tasks(desk: Desk) -> None:
    desk.write(*[done(f"t{number}", "Answer: 42") for number in (3, 1, 3, 2)])
    assert desk.grade("--task", "t3").json["planned"] == 2
    assert desk.verdicts() == {("t3", 1): "passed", ("t3", 2): "passed"}


def test_default_directory_is_named_after_the_samples_and_told(desk: Desk) -> None:
    desk.write(done("t1", "Answer: 42"))
    graded = securebench("grade", desk.directory / "tasks.jsonl", desk.samples, cwd=desk.directory)
    assert graded.code == 0, graded.err
    [directory] = (desk.directory / "runs").iterdir()
    assert directory.name.startswith("samples-")
    assert f"records go to runs/{directory.name}" in graded.err
    assert json.loads((directory / "plan.json").read_text())["run_id"] == directory.name


@pytest.mark.parametrize("way", ["gzip", "stdin", "stdin gzip"])
def test_packed_and_piped_samples_are_the_same_samples(desk: Desk, way: str) -> None:
    desk.write(done("t1", "Answer: 42"), done("t2", "Answer: 41"))
    plain = desk.grade().json
    data = desk.samples.read_bytes()
    data = gzip.compress(data) if "gzip" in way else data
    (desk.directory / "other.jsonl.gz").write_bytes(data)
    source = "-" if "stdin" in way else str(desk.directory / "other.jsonl.gz")
    again = subprocess.run(
        [*CLI, "grade", str(desk.directory), source, "-o", str(desk.directory / "again"), "--json"],
        input=data,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["samples"] == plain["samples"]
    assert json.loads(again.stdout)["passed"] == 1


def test_every_problem_is_told_with_its_line_and_nothing_runs(desk: Desk) -> None:
    desk.write(done("t1", "x"), done("t9", "x"), done("t1", "x", "model_patch"), {"task_id": "t1"})
    with desk.samples.open("ab") as file:
        file.write(b"{\n")
    graded = desk.grade()
    assert graded.code == 2
    for line, words in (
        (2, "the pack has no task 't9'"),
        (3, "collects a text"),
        (4, "holds no candidate"),
        (5, "not JSON"),
    ):
        assert any(f"samples.jsonl:{line}: " in told and words in told for told in graded.err.splitlines())
    assert "4 problems found; nothing was run" in graded.err
    assert not desk.output.exists()


def test_resume_refuses_other_samples(desk: Desk) -> None:
    desk.write(done("t1", "Answer: 42"), done("t2", "Answer: 42"))
    assert desk.grade().code == 0
    refused = desk.grade()
    assert refused.code == 2
    assert "use --resume" in refused.err
    assert desk.grade("--resume").json["passed"] == 2  # nothing is left to do
    desk.write(done("t1", "Answer: 42"), done("t2", "Answer: 43"))
    other = desk.grade("--resume")
    assert other.code == 2
    assert "harness.samples" in other.err
    assert "sha256:" in other.err


def test_killed_grading_goes_on_and_judges_every_sample_exactly_once(code: Desk, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o755)
    dice = random.Random(7)
    counts = {"a": 30, "b": 9, "c": 1}
    samples = [done(task, f"    # {n}\n    return x * x\n") for task, count in counts.items() for n in range(count)]
    dice.shuffle(samples)
    code.write(*samples)
    argv = [*CLI, "grade", str(code.directory), str(code.samples), "-o", str(code.output), "--resume", "--quiet"]
    pids, path = [], code.output / "candidates.jsonl"
    for wanted in (3, 12):
        engine = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(temporary)})
        deadline = time.monotonic() + 60
        while (not path.exists() or path.read_bytes().count(b"\n") < wanted) and time.monotonic() < deadline:
            time.sleep(0.01)
        pids += [engine.pid, *children(engine.pid)]
        engine.kill()
        engine.wait()
    kept = path.read_bytes().count(b"\n")
    assert 12 <= kept < 40
    finished = code.grade("--resume")
    assert finished.code == 0, finished.err
    records = check_chain(code.output, path.read_bytes())
    assert Counter(record["task_id"] for record in records) == counts
    texts = Counter((record["task_id"], record["candidate_text"].split("\n")[-3]) for record in records)
    assert set(texts.values()) == {1}
    assert finished.json["passed"] == 40
    assert securebench("verify", code.output).code == 0
    assert leftovers_soon(pids, temporary) == NOTHING


def test_killed_process_is_a_recorded_repeat_and_no_failure(code: Desk, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o755)
    slow = "    import time\n    time.sleep(0.6)\n    return x * x\n"
    code.write(*[done(task, slow) for task in "abc" for _ in range(2)])
    engine = subprocess.Popen(
        [*CLI, "grade", str(code.directory), str(code.samples), "-o", str(code.output), "--quiet", "--workers", "2"],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    deadline, events, journal = time.monotonic() + 60, b"", code.output / "events.jsonl"
    while events.count(b'"task_start"') - events.count(b'"task_done"') < 2:  # then both processes are at something
        assert time.monotonic() < deadline
        time.sleep(0.01)
        events = journal.read_bytes() if journal.exists() else b""
    killed = children(engine.pid)[0]
    os.kill(killed, signal.SIGKILL)
    assert engine.wait(120) == 0
    assert leftovers_soon([engine.pid, killed], temporary) == NOTHING
    assert set(code.verdicts().values()) == {"passed"}
    repeats = [repeat["fault"] for record in code.records() for repeat in record["repeats"]]
    assert repeats == ["a process of the engine ended by signal 9"]
    assert json.loads((code.output / "summary.json").read_text())["retries"] == 1
    assert securebench("verify", code.output).code == 0


def test_interrupt_finishes_what_is_judged_and_seals(code: Desk) -> None:
    slow = "    import time\n    time.sleep(0.2)\n    return x * x\n"
    code.write(*[done(task, slow) for task in "abc" for _ in range(8)])
    engine = subprocess.Popen(
        [*CLI, "grade", str(code.directory), str(code.samples), "-o", str(code.output), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    path = code.output / "candidates.jsonl"
    while (not path.exists() or path.read_bytes().count(b"\n") < 4) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(engine.pid, signal.SIGINT)  # as a terminal does it
    out, err = engine.communicate(timeout=120)
    assert engine.returncode == 130, err
    assert b"Traceback" not in err
    summary = json.loads(out)
    assert summary["interrupted"] is True
    assert 4 <= summary["total"] < 24
    assert (summary["errors"], summary["passed"]) == (0, summary["total"])
    assert securebench("verify", code.output).code == 0
    assert code.grade("--resume").json["passed"] == 24


def test_tester_file_with_samples_runs_in_one_process(desk: Desk) -> None:
    desk.write(done("t1", "Answer: 42"), done("t1", "Answer: 41"), done("t3", "Answer: 42"))
    tester = {
        "schema_version": "0.3",
        "run": {"id": "from-a-file", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "samples", "config": {"path": "samples.jsonl"}},
    }
    (desk.directory / "tester.yaml").write_text(json.dumps(tester))
    ran = securebench("run", "--config", desk.directory / "tester.yaml", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["passed"], ran.json["failed"]) == (2, 2)
    assert securebench("verify", desk.output).code == 0
    tester["run"]["attempts"] = 2
    (desk.directory / "tester.yaml").write_text(json.dumps(tester))
    refused = securebench("run", "--config", desk.directory / "tester.yaml")
    assert refused.code == 2
    assert "as many attempts as the samples file has samples" in refused.err
    (desk.directory / "tester.yaml").write_text(
        json.dumps(tester | {"schema_version": "0.2", "run": {"id": "x", "output_dir": "y"}})
    )
    assert securebench("run", "--config", desk.directory / "tester.yaml").code == 2


def test_model_that_judges_is_asked_by_processes_and_its_key_is_written_nowhere(tmp_path: Path) -> None:
    desk = Desk(tmp_path, [JUDGED])
    desk.write(done("capital", "Canberra it is."), done("capital", "Sydney."))
    assert desk.grade().json["pending"] == 2
    with scripted_judge(honest) as server:
        tester = {
            "schema_version": "0.3",
            "run": {"id": "ignored", "output_dir": "ignored"},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {"type": "null"},
            "judge": {"base_url": server.address, "model": "scripted", "api_key_env": "JUDGE_KEY", "votes": 1},
        }
        (tmp_path / "tester.yaml").write_text(json.dumps(tester))
        words = (
            "grade",
            tmp_path,
            desk.samples,
            "-o",
            tmp_path / "judged",
            "--config",
            tmp_path / "tester.yaml",
            "--json",
        )
        graded = securebench(*words, env={"JUDGE_KEY": "the-judge-key"})
        assert graded.code == 0, graded.err
        assert all(headers["Authorization"] == "Bearer the-judge-key" for headers, _ in server.asked)
    assert (graded.json["passed"], graded.json["failed"], graded.json["assurance"]) == (1, 1, {"judged": 2})
    written = "".join(path.read_text() for path in (tmp_path / "judged").rglob("*.json*"))
    assert "the-judge-key" not in written + graded.out + graded.err


PREDICTION = """\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""


def test_predictions_for_repositories_are_taken_unchanged(tmp_path: Path) -> None:
    need_bubblewrap()
    row = {
        "id": "calc__calc-1",
        "family": "repo_patch",
        "input": {"repo": "calc", "base_commit": "0" * 40, "instructions": "add() subtracts."},
        "assets": [{"path": "calc"}],
        "eval": {
            "tests": {
                "source": "command",
                "command": ["python3", "-c", "import calc; assert calc.add(2, 3) == 5"],
            }
        },
    }
    desk = Desk(tmp_path, [row])
    (tmp_path / "assets" / "calc").mkdir(parents=True)
    (tmp_path / "assets" / "calc" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    named = {"instance_id": "calc__calc-1", "model_name_or_path": "m"}
    desk.write(
        named | {"model_patch": PREDICTION},
        named | {"model_patch": PREDICTION.replace("a + b", "a * b").removesuffix("\n")},
        named | {"model_patch": ""},
        named | {"model_patch": None},
    )
    graded = desk.grade()
    assert graded.code == 0, graded.err
    verdicts = desk.verdicts()
    assert verdicts["calc__calc-1", 1] == "passed", desk.records()[0]
    assert "passed" not in {verdicts["calc__calc-1", attempt] for attempt in (2, 3, 4)}
    assert verdicts["calc__calc-1", 4] == "no_candidate"
    assert securebench("verify", desk.output).code == 0


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the public data sets are not at {DATA}")
def test_human_eval_samples_score_as_they_must(tmp_path: Path) -> None:
    """Completions as the original harness takes them, whole solutions as EvalPlus does, and the empty completion."""
    need_bubblewrap()
    with gzip.open(DATA / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in lines]
    rows = [
        {
            "id": task["task_id"],
            "family": "code_completion",
            "input": {"prompt": task["prompt"], "language": "python", "entry_point": task["entry_point"]},
            "eval": {"tests": {"source": "inline", "code": task["test"]}},
        }
        for task in tasks
    ]
    desk = Desk(tmp_path, rows)
    desk.write(
        *[done(task["task_id"], task["canonical_solution"]) for task in tasks],
        *[done(task["task_id"], task["prompt"] + task["canonical_solution"], "solution") for task in tasks[::8]],
        *[done(task["task_id"], "    pass\n") for task in tasks[::8]],
    )
    graded = desk.grade()
    assert graded.code == 0, graded.err
    wrong = {key: verdict for key, verdict in desk.verdicts().items() if (verdict == "passed") == (key[1] == 3)}
    assert wrong == {}
    assert graded.json["passed"] == 164 + len(tasks[::8])
