"""`securebench regrade`: stored candidates of real runs before the present verifiers, and runs that are only read."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.repositories.judging import as_patch
from tests.attacks.repositories.repositories import REPOSITORIES
from tests.attacks.terminal.judging import lay
from tests.e2e.workbench import CLI, Finished, Workbench, need_bubblewrap, question, securebench

from securebench.regrading import RegradeOptions, regrade_run
from securebench.testing import scripted_judge as judges
from securebench.testing.scripted_judge import scripted_judge

WALLET = next(repository for repository in REPOSITORIES if repository.name == "wallet")
MARKER = "a hidden phrase that nobody may read"

AGENT = f"""
import json, pathlib
task = json.load(open("task.json"))["task_id"]
if task == "wallet":
    pathlib.Path("wallet.py").write_text({WALLET.fix["wallet.py"]!r})
elif task == "lazy":
    pathlib.Path("notes.txt").write_text("no idea")
elif task == "file":
    pathlib.Path("answer.txt").write_text("42")
elif task == "big":
    pathlib.Path("answer.txt").write_text("42" + "0" * 300_000)
elif task == "add":
    print("def add(a, b):\\n    return a + b")
elif task == "crash":
    print("Answer: 42"); raise SystemExit(3)
else:
    print("Answer:", 41 if task == "wrong" else 42)
"""


def repo_row(name: str) -> dict[str, Any]:
    tests = {
        "source": WALLET.runner,
        "fail_to_pass": WALLET.fail_to_pass,
        "pass_to_pass": WALLET.pass_to_pass,
        "files": [{"path": f"suite/{path}", "mount": path} for path in WALLET.tests],
    }
    return {
        "id": name,
        "family": "repo_patch",
        "input": {"repo": "repo", "base_commit": "main", "instructions": "Fix it."},
        "assets": [{"path": "repo"}],
        "eval": {"tests": tests, "gold_patch": as_patch(WALLET.files, WALLET.fix)},
    }


def terminal_row(name: str, checker: str) -> dict[str, Any]:
    return {
        "id": name,
        "family": "terminal_task",
        "input": {"instructions": "Write the answer."},
        "environment": {"workdir": "/app"},
        "eval": {"checker": {"source": "pytest", "path": checker}},
    }


def code_row(name: str = "add") -> dict[str, Any]:
    generate = {"count": 5, "args": [{"type": "int"}, {"type": "int"}]}
    cases = {"source": "cases", "cases": [{"args": [2, 3], "expected": 5}], "generate": generate}
    return {
        "id": name,
        "family": "code_completion",
        "input": {"prompt": "Write add(a, b).", "language": "python", "entry_point": "add"},
        "eval": {"tests": cases, "reference_solution": "def add(a, b): return a + b"},
    }


def named(name: str, **more: Any) -> dict[str, Any]:
    return question(1, **more) | {"id": name}


ROWS = [
    named("right"),
    named("wrong"),
    named("crash"),
    code_row(),
    repo_row("wallet"),
    repo_row("lazy"),
    terminal_row("file", "strict.py"),
    terminal_row("big", "large.py"),
]


def write_rows(directory: Path, rows: list[dict[str, Any]]) -> None:
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def make(directory: Path, rows: list[dict[str, Any]], harness: dict[str, Any], **run: Any) -> Workbench:
    lay(directory / "assets/repo", WALLET.files)
    lay(directory / "hidden/suite", WALLET.tests)
    strict = "def test_it():\n    assert open('/app/answer.txt').read() == '42'\n"
    large = "def test_it():\n    assert len(open('/app/answer.txt').read()) > 300_000\n"
    lay(directory / "hidden", {"strict.py": strict, "large.py": large})
    (directory / "manifest.yaml").write_text("id: regrading\nversion: 1\n")
    write_rows(directory, rows)
    tester = {
        "schema_version": "0.3",
        "run": {"id": "regraded", "output_dir": "out", **run},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": harness,
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    return Workbench(directory)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """A run with every family that executes here, passed, failed and never judged."""
    need_bubblewrap()
    work = make(
        tmp_path_factory.mktemp("finished"), ROWS, {"type": "command", "config": {"command": ["python3", "-c", AGENT]}}
    )
    done = work.run()
    assert done.code == 0, done.err
    assert {record["task_id"] for record in work.records() if not record["passed"]} == {"wrong", "crash", "lazy"}
    return work


@pytest.fixture
def mine(finished: Workbench, tmp_path: Path) -> Workbench:
    """A copy of it that a test may change."""
    shutil.copytree(finished.directory, tmp_path / "mine", symlinks=True)
    return Workbench(tmp_path / "mine")


@pytest.fixture
def texts(tmp_path: Path) -> Workbench:
    """A run that needs no sandbox: one control agent, three questions."""
    rows = [named("a"), named("b", eval={"accepted_answers": [41]}), named("c")]
    work = make(tmp_path / "texts", rows, {"type": "constant", "config": {"response": "Answer: 42"}})
    assert work.run().code == 0
    return work


def fingerprint(directory: Path) -> dict[str, str]:
    """Every name, mode, size, time of change and content beneath a directory."""
    found = {}
    for path in sorted([directory, *directory.rglob("*")]):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
        found[str(path)] = f"{status.st_mode:o} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {content}"
    return found


def regrade(work: Workbench, *args: str | Path) -> Finished:
    """As JSON, with the pack beside the run. Whatever comes of it, the run stays as it is."""
    before = fingerprint(work.output)
    done = securebench("regrade", work.output, "--json", *(args or ("--pack", work.directory)))
    assert fingerprint(work.output) == before
    return done


def by_task(done: Finished) -> dict[str, dict[str, Any]]:
    return {one["task_id"]: one for one in done.json["attempts"]}


def categories(done: Finished) -> dict[str, str]:
    return {name: one["category"] for name, one in by_task(done).items()}


SAME = {row["id"]: "not_judged_before" if row["id"] == "crash" else "same" for row in ROWS}


def edited(work: Workbench, task: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change one record in place, as somebody who does not know of the chain would."""
    path = work.output / "candidates.jsonl"
    records = work.records()
    for record in records:
        if record["task_id"] == task:
            change(record)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))


def test_the_same_pack_gives_the_same_verdicts_in_every_family(finished: Workbench) -> None:
    done = regrade(finished)
    assert done.code == 0, (done.out, done.err)
    report = done.json
    assert categories(done) == SAME
    assert (report["ok"], report["sealed"], report["seed"], report["problems"]) == (True, "complete", "revealed", [])
    assert report["pack"]["same"] is True
    assert report["old"] == report["new"] == {"judged": 8, "passed": 5, "score": 5 / 8}
    assert by_task(done)["crash"]["why"] == ["producing failed (producer_failed), which stays so"]
    assert "regraded 8 of 8" in done.err


def test_a_corrected_answer_changes_exactly_its_rows_with_a_reason(mine: Workbench) -> None:
    rows = [named("wrong", eval={"accepted_answers": [41]}) if row["id"] == "wrong" else row for row in ROWS]
    write_rows(mine.directory, rows)
    (mine.directory / "hidden/strict.py").write_text(f"def test_it():\n    raise SystemError({MARKER!r})\n")
    done = regrade(mine)
    assert done.code == 1, (done.out, done.err)
    assert categories(done) == SAME | {"wrong": "changed", "file": "changed"}
    wrong, file = by_task(done)["wrong"], by_task(done)["file"]
    assert (wrong["direction"], wrong["old"]["failure_reason"], wrong["new"]["status"]) == (
        "improved",
        "wrong_answer",
        "passed",
    )
    assert (file["direction"], file["new"]["failure_reason"]) == ("worsened", "tests_failed")
    for one in (wrong, file):
        assert "the pack changed: this row, one of its files, or something else in it" in one["why"]
    report = done.json
    assert (report["pack"]["same"], report["old"]["passed"], report["new"]["passed"]) == (False, 5, 5)
    assert report["since"][0].startswith("the pack is another one")
    assert MARKER not in done.out + done.err


def test_a_corrected_suite_changes_a_patch_also_where_the_first_one_was_in_use(mine: Workbench) -> None:
    """In one process, with the same seed and the same name of the task: nothing of the earlier suite is remembered."""
    options = RegradeOptions(mine.directory / "manifest.yaml", mine.directory / "tasks.jsonl", only=("wallet",))
    assert [str(one.category) for one in regrade_run(mine.output, options).attempts] == ["same"]
    tests = mine.directory / "hidden/suite/tests/test_wallet.py"
    tests.write_text(tests.read_text().replace("withdraw(4), 6", "withdraw(4), 7"))
    gold = as_patch(WALLET.files, {"wallet.py": WALLET.fix["wallet.py"].replace("-= amount", "-= amount - 1")})
    rows = [row if row["id"] != "wallet" else row | {"eval": row["eval"] | {"gold_patch": gold}} for row in ROWS]
    write_rows(mine.directory, rows)
    [wallet] = regrade_run(mine.output, options).attempts
    assert (wallet.category, wallet.direction) == ("changed", "worsened"), wallet


def test_another_repository_cannot_judge_a_patch_made_from_the_first(mine: Workbench) -> None:
    lay(mine.directory / "assets/repo", {"wallet.py": WALLET.files["wallet.py"] + "\n# newer\n"})
    rows = [row if row["id"] != "wallet" else row | {"eval": {"tests": row["eval"]["tests"]}} for row in ROWS]
    write_rows(mine.directory, rows)
    done = regrade(mine, "--pack", mine.directory / "manifest.yaml", "--task", "wallet")
    assert (done.code, categories(done)) == (1, {"wallet": "unverifiable"}), (done.out, done.err)
    assert "not made from this task's repository" in by_task(done)["wallet"]["why"][0]


def test_a_removed_row_makes_its_candidates_unverifiable(mine: Workbench) -> None:
    write_rows(mine.directory, [row for row in ROWS if row["id"] != "right"])
    done = regrade(mine)
    assert (done.code, categories(done)) == (1, SAME | {"right": "unverifiable"}), (done.out, done.err)
    assert by_task(done)["right"]["why"] == ["the pack has no such task"]
    assert "1 rows are gone: right" in done.json["since"]


def blob_of(work: Workbench, task: str) -> Path:
    """The file of its own that a large content has."""
    [record] = [record for record in work.records() if record["task_id"] == task]
    tree = record["candidate_workspace"].removeprefix("sha256:")
    stored = json.loads((work.output / "candidates/trees" / tree[:2] / f"{tree[2:]}.json").read_text())
    digest = max(stored["entries"], key=lambda entry: entry["size"])["digest"].removeprefix("sha256:")
    return work.output / "candidates/blobs" / digest[:2] / digest[2:]


def test_a_removed_content_makes_its_candidate_unverifiable(mine: Workbench) -> None:
    blob_of(mine, "big").unlink()
    done = regrade(mine)
    assert (done.code, categories(done)) == (1, SAME | {"big": "unverifiable"}), (done.out, done.err)
    assert "is not in the candidate store" in by_task(done)["big"]["why"][0]
    assert any("is not in the candidate store" in problem for problem in done.json["problems"])
    assert (done.json["old"]["judged"], done.json["new"]["judged"]) == (8, 7)


def test_a_changed_content_makes_its_candidate_unverifiable(mine: Workbench) -> None:
    blob = blob_of(mine, "big")
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes().replace(b"42", b"24", 1))
    done = regrade(mine)
    assert (done.code, categories(done)) == (1, SAME | {"big": "unverifiable"}), (done.out, done.err)
    assert "was changed in the candidate store" in by_task(done)["big"]["why"][0]


def test_a_changed_tree_makes_its_patch_unverifiable(mine: Workbench) -> None:
    [record] = [record for record in mine.records() if record["task_id"] == "wallet"]
    digest = record["producer_metadata"]["candidate"]["capture"]["tree"].removeprefix("sha256:")
    tree = mine.output / "candidates/trees" / digest[:2] / f"{digest[2:]}.json"
    tree.chmod(0o644)
    tree.write_text(tree.read_text().replace('"mode":420', '"mode":493', 1))
    done = regrade(mine)
    assert (done.code, categories(done)) == (1, SAME | {"wallet": "unverifiable"}), (done.out, done.err)
    assert f"tree sha256:{digest} was changed in the candidate store" in by_task(done)["wallet"]["why"][0]


@pytest.mark.parametrize(
    ("field", "value"),
    [("candidate_text", "Answer: 41"), ("candidate_text", None), ("candidate_workspace", "sha256:" + 64 * "0")],
)
def test_a_changed_record_makes_its_candidate_unverifiable(texts: Workbench, field: str, value: str | None) -> None:
    edited(texts, "b", lambda record: record.update({field: value}))
    done = regrade(texts)
    expected = {"a": "same", "b": "not_judged_before" if value is None else "unverifiable", "c": "same"}
    assert (done.code, categories(done)) == (1, expected), (done.out, done.err)
    assert any(problem.startswith("candidates.jsonl:") for problem in done.json["problems"])
    if value is not None:
        assert "candidate" in by_task(done)["b"]["why"][0]


def test_a_forged_verdict_does_not_come_out_again(texts: Workbench) -> None:
    forged = {"verification_status": "passed", "passed": True, "score": 1.0, "failure_reason": None}
    edited(texts, "b", lambda record: record.update(forged))
    done = regrade(texts)
    assert (done.code, by_task(done)["b"]["direction"]) == (1, "worsened"), (done.out, done.err)
    assert done.json["problems"]


def test_a_patch_that_came_as_text_is_judged_again(tmp_path: Path) -> None:
    need_bubblewrap()
    patch = as_patch(WALLET.files, WALLET.fix)
    work = make(tmp_path, [repo_row("wallet")], {"type": "constant", "config": {"response": patch}}, attempts=2)
    assert work.run().code == 0
    done = regrade(work)
    assert (done.code, done.json["counts"]["same"], done.json["new"]["passed"]) == (0, 2, 2), (done.out, done.err)


def test_a_run_on_a_read_only_file_system_is_regraded(texts: Workbench) -> None:
    need_bubblewrap()
    walls = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(texts.output), str(texts.output), "--"]
    tried = subprocess.run([*walls, "touch", str(texts.output / "x")], capture_output=True, text=True, check=False)
    assert "Read-only" in tried.stderr
    command = [*walls, *CLI, "regrade", str(texts.output), "--pack", str(texts.directory), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["same"] == 3


def test_the_report_goes_to_a_file_but_never_into_the_run(texts: Workbench, tmp_path: Path) -> None:
    done = regrade(texts, "--config", texts.config, "--output", tmp_path / "report.json")
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "report.json").read_text()) == done.json
    refused = regrade(texts, "--config", texts.config, "--output", texts.output / "report.json")
    assert (refused.code, "only read" in refused.err) == (2, True)


def test_the_runs_own_seed_draws_the_same_cases_again(tmp_path: Path) -> None:
    """A candidate that is wrong now and then: with another seed its verdicts would hardly all be the same."""
    need_bubblewrap()
    rows = [code_row(f"add-{number}") for number in range(8)]
    often = "def add(a, b):\n    return a + b + (a % 8 == 0)\n"
    work = make(tmp_path, rows, {"type": "constant", "config": {"response": often}})
    assert work.run().code == 0
    done = regrade(work)
    assert (done.code, done.json["counts"]["same"]) == (0, 8), (done.out, done.err)


def test_a_run_without_a_seal_is_judged_with_the_seed_it_keeps_or_a_fresh_one(texts: Workbench) -> None:
    envelope = json.loads((texts.output / "seal.json").read_text())
    seed = json.loads(base64.b64decode(envelope["payload"]))["predicate"]["seed"]["value"]
    (texts.output / "seal.json").unlink()
    done = regrade(texts)
    assert (done.code, done.json["seed"], done.json["sealed"]) == (0, "fresh", "unsealed"), (done.out, done.err)
    assert any("seed is neither revealed nor kept" in line for line in done.json["since"])
    (texts.output / ".seed").write_text(seed)
    done = regrade(texts)
    assert (done.code, done.json["seed"]) == (0, "kept"), (done.out, done.err)
    (texts.output / ".seed").write_text(64 * "0")  # not the one the plan commits to
    assert regrade(texts).json["seed"] == "fresh"


def test_an_interrupted_run_is_regraded_as_far_as_it_came(texts: Workbench) -> None:
    records = texts.output / "candidates.jsonl"
    first = records.read_bytes().splitlines(True)[:2]
    records.write_bytes(b"".join(first))
    (texts.output / "seal.json").unlink()
    done = regrade(texts)
    same = {json.loads(line)["task_id"]: "same" for line in first}
    assert (done.code, categories(done)) == (0, same), (done.out, done.err)
    assert done.json["not_recorded"] == 1


def judged_by(work: Workbench, address: str) -> None:
    tester = json.loads(work.config.read_text()) | {"judge": {"base_url": address, "model": "scripted"}}
    work.config.write_text(json.dumps(tester))


@pytest.fixture
def prose(tmp_path: Path) -> Workbench:
    """A question whose answer a model must judge."""
    rubric = {"type": "judge", "criteria": "Names the right city.", "controls": [{"response": "It is Sydney."}]}
    row = {
        "id": "capital",
        "family": "free_response",
        "input": {"prompt": "What is the capital of Australia?"},
        "eval": {"rubric": rubric, "reference_answer": "Canberra"},
    }
    return make(tmp_path / "prose", [row], {"type": "constant", "config": {"response": "Canberra it is."}})


def test_what_a_model_judged_needs_the_tester_file(prose: Workbench) -> None:
    with scripted_judge(judges.honest) as server:
        judged_by(prose, server.address)
        assert prose.run().code == 0
        done = regrade(prose)
        assert (done.code, categories(done)) == (1, {"capital": "unverifiable"}), (done.out, done.err)
        assert "--config" in by_task(done)["capital"]["why"][0]
        done = regrade(prose, "--config", prose.config)
        assert (done.code, categories(done)) == (0, {"capital": "same"}), (done.out, done.err)
    done = regrade(prose, "--config", prose.config)  # the model is gone: nobody's verdict
    assert (done.code, categories(done)) == (3, {"capital": "error"}), (done.out, done.err)


def test_where_the_host_had_failed_the_last_record_counts_also_under_another_plan(prose: Workbench) -> None:
    judged_by(prose, "http://127.0.0.1:9/v1")
    assert prose.run().code == 3
    with scripted_judge(judges.honest) as server:
        judged_by(prose, server.address)
        done = regrade(prose, "--config", prose.config)
        assert (done.code, done.json["seed"], categories(done)) == (1, "kept", {"capital": "changed"}), done.err
        assert "the host or the pack had failed then" in by_task(done)["capital"]["why"]
        resumed = prose.run("--resume-anyway")
        assert resumed.code == 0, resumed.err
        done = regrade(prose, "--config", prose.config)
    assert (done.code, done.json["seed"], categories(done)) == (0, "revealed", {"capital": "same"}), done.out


def test_the_table_names_what_changed(texts: Workbench) -> None:
    write_rows(texts.directory, [named("a"), named("b"), named("c", eval={"accepted_answers": [43]})])
    done = securebench("regrade", texts.output, "--pack", texts.directory, "--quiet", env={"COLUMNS": "200"})
    assert done.code == 1, done.err
    assert done.err == ""
    lines = list(map(str.strip, done.out.splitlines()))
    [improved] = [line for line in lines if line.startswith("b #1")]
    [worsened] = [line for line in lines if line.startswith("c #1")]
    assert "failed (wrong_answer, pure)" in improved
    assert "the pack changed: this row" in worsened
    assert "3 attempts: 1 the same, 2 changed (1 improved, 1 worsened)" in lines
    assert "score: 66.7% (2 of 3 passed) → 66.7% (2 of 3 passed)" in lines


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["{run}"], 2, "--pack"),
        (["{run}", "--pack", "{pack}/nowhere"], 2, "nowhere: no such directory"),
        (["{pack}", "--pack", "{pack}"], 2, "holds no run"),
        (["{run}", "--pack", "{pack}", "--task", "aa"], 2, "has no task 'aa'"),
    ],
)
def test_what_is_asked_wrongly_is_told(texts: Workbench, args: list[str], code: int, message: str) -> None:
    done = securebench("regrade", *(arg.format(run=texts.output, pack=texts.directory) for arg in args))
    assert (done.code, message in done.err) == (code, True), done.err


def test_an_interrupt_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    need_bubblewrap()
    slow = {"slow.py": "import time\n\n\ndef test_it():\n    time.sleep(1.5 if open('/tmp/x', 'a') else 0)\n"}
    work = make(tmp_path, [terminal_row("file", "slow.py")], {"type": "null"}, attempts=4)
    lay(work.directory / "hidden", slow)
    assert work.run().code == 0
    (staging := tmp_path / "tmp").mkdir()
    before = fingerprint(work.output)
    process = subprocess.Popen(
        [*CLI, "regrade", str(work.output), "--pack", str(work.directory), "--workers", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(staging)},
    )
    deadline = time.monotonic() + 60
    while not list(staging.glob("securebench-*/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert (report["interrupted"], report["ok"]) == (True, False)
    assert len(report["attempts"]) < 4
    assert list(staging.iterdir()) == []
    assert fingerprint(work.output) == before
