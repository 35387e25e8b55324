"""Runs in the formats of Inspect, Harbor and SWE-bench: complete, exact, and with names that lead nowhere."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.control_runs import ANSWERS, constant_run, write_control_pack
from tests.hostile_run import TEXTS, hostile_run
from tests.injection import CORPUS, controls_in

from securebench import _json
from securebench.errors import IntegrityError
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_file import open_samples
from securebench.harnesses.sample_layouts.base import MAX_LINE
from securebench.harnesses.samples import candidate_of, read_sample
from securebench.reports.export.attempts import file_name, lacking
from securebench.reports.export.formats import OF_ONE_RUN, run_files, run_text
from securebench.reports.runs import Run, load_run
from securebench.testing.synthetic_run import Record, SyntheticRun, write_run


def timed_out(record: Record) -> None:
    """Makes the second attempt at every patch task one whose agent did not finish, and which left a patch all the same."""
    if record["task_type"] == "repo_patch" and record["attempt"] == 2 and record["verification_status"] != "error":
        record |= {"verification_status": "failed", "passed": False, "score": 0.0, "failure_reason": "producer_timeout"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    wanted = SyntheticRun(tasks=40, attempts=2, faults=0.1, transcripts=0.5, alter=timed_out)
    return load_run(write_run(tmp_path_factory.mktemp("m") / "made", wanted))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(hostile_run(tmp_path_factory.mktemp("h") / "hostile"))


def records(run: Run) -> dict[tuple[str, int], dict[str, Any]]:
    lines = (run.directory / "candidates.jsonl").read_bytes().splitlines()
    found = [json.loads(line) for line in lines]
    return {(record["task_id"], record["attempt"]): record for record in found}


def text(run: Run, style: str, attempt: int = 1) -> str:
    return "".join(run_text(run, style, attempt))


# SWE-bench


def test_predictions_are_those_of_one_attempt_at_tasks_that_collect_a_patch(made: Run) -> None:
    lines = [json.loads(line) for line in text(made, "swebench").splitlines()]
    expected = [row for row in made.rows if row.family == "repo_patch" and row.attempt == 1]
    assert [line["instance_id"] for line in lines] == [row.task_id for row in expected]
    assert all(list(line) == ["instance_id", "model_name_or_path", "model_patch"] for line in lines)
    told = records(made)
    patches = [
        None if row.failure_reason == "producer_timeout" else told[row.key]["candidate_patch"] for row in expected
    ]
    assert [line["model_patch"] for line in lines] == patches
    assert sum(patch is not None for patch in patches) > 5
    assert {line["model_name_or_path"] for line in lines} == {"example-large"}


def test_attempt_whose_agent_did_not_finish_has_no_patch(made: Run) -> None:
    rows = [row for row in made.rows if row.family == "repo_patch" and row.attempt == 2]
    lines = [json.loads(line) for line in text(made, "swebench", 2).splitlines()]
    patches = {line["instance_id"]: line["model_patch"] for line in lines}
    unfinished = [row for row in rows if row.failure_reason == "producer_timeout"]
    assert unfinished
    assert any(records(made)[row.key]["candidate_patch"] for row in unfinished)  # there is one to be left out
    assert all(patches[row.task_id] is None for row in unfinished)
    assert text(made, "swebench", 3) == ""


def incomplete(record: Record) -> None:
    """Makes the patches of some attempts ones of which a part is missing, or that no sample can hold."""
    if record["candidate_patch"] is None or record["attempt"] == 3:
        return
    if record["attempt"] == 1:
        capture = {"delta": "sha256:" + "0" * 64, "not_rendered": ["a.bin", "b.bin"]}
        record["producer_metadata"]["candidate"] = {"source": "workspace", "capture": capture}
    else:
        record["candidate_patch"] += "\u4e00" * (MAX_LINE // 6)  # in JSON as others read it, six bytes each


def test_attempts_whose_patch_is_not_what_was_judged_are_named(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "r", SyntheticRun(tasks=6, attempts=3, faults=0.0, alter=incomplete)))
    told, with_patch = list(lacking(run)), {key for key, one in records(run).items() if one["candidate_patch"]}
    assert with_patch
    expected = [row for row in run.rows if row.key in with_patch and row.attempt < 3]
    assert [line.partition(": ")[0] for line in told] == [row.name for row in expected]
    for line, row in zip(told, expected, strict=True):
        words = "are not in it (2)" if row.attempt == 1 else "longer than a sample may be"
        assert line.endswith(words)
    assert list(lacking(run, 3)) == []


# Inspect


def test_log_holds_every_attempt_and_no_target(made: Run) -> None:
    log = json.loads(text(made, "inspect"))
    assert (log["version"], log["status"]) == (2, "cancelled")  # the host failed on some
    assert len(log["samples"]) == len(made.rows)
    for row, sample in zip(made.rows, log["samples"], strict=True):
        assert (sample["id"], sample["epoch"]) == row.key
        assert sample["target"] == ""
        assert (row.score is None) == ("scores" not in sample)
        assert row.score is None or sample["scores"]["securebench"]["value"] == row.score
        assert (row.status == "error") == ("error" in sample)
    [metric] = log["results"]["scores"]
    assert metric["metrics"]["accuracy"]["value"] == pytest.approx(made.summary.score)


def test_log_reads_back_as_the_samples_it_was_made_of(made: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(text(made, "inspect"))
    kinds = {"code_completion": CandidateKind.CODE, "repo_patch": CandidateKind.PATCH}
    tasks = {task.id: kinds.get(task.task_type, CandidateKind.TEXT) for task in made.plan.tasks}
    told, checked = records(made), Counter[str]()
    with open_samples(path, tasks) as samples:
        assert len(samples) == len(made.rows)
        for row in made.rows:
            line = samples.line(*row.key)
            assert line is not None
            sample, record = read_sample(_json.loads(line.data)), told[row.key]
            judged = record["candidate_patch"] or record["candidate_text"]
            if judged is None or row.failure_reason == "producer_timeout":
                assert sample.text is None
                continue
            candidate = candidate_of(sample, tasks[row.task_id], {"language": "text"})
            assert candidate is not None
            assert candidate.content == judged
            checked[tasks[row.task_id]] += 1
    assert all(checked[kind] for kind in (CandidateKind.CODE, CandidateKind.PATCH, CandidateKind.TEXT))


# Trajectories


def test_trajectories_say_which_attempt_they_are_of(made: Run) -> None:
    documents = [json.loads(line) for line in text(made, "atif").splitlines()]
    kept = {key for key, record in records(made).items() if "trajectory.json" in record["evidence"]}
    marks = [document["extra"]["securebench"] for document in documents]
    assert {(mark["task_id"], mark["attempt"]) for mark in marks} == kept
    assert all(document["schema_version"].startswith("ATIF-v1") for document in documents)
    for document in documents:
        assert [step["step_id"] for step in document["steps"]] == list(range(1, len(document["steps"]) + 1))
    files = dict(run_files(made, "atif"))
    assert len(files) == len(documents)
    assert all(re.fullmatch(r"[a-z0-9._-]+__\d+\.json", name) for name in files)


def test_trajectory_that_was_changed_is_not_exported(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "r", SyntheticRun(tasks=4, attempts=1, transcripts=1.0)))
    for path in (run.directory / "candidates").rglob("*.pack"):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes().replace(b"ATIF", b"ATOF"))
    with pytest.raises(IntegrityError):
        text(run, "atif")


# Harbor


def test_job_has_a_trial_for_every_attempt(made: Run) -> None:
    files = dict(run_files(made, "harbor"))
    job = json.loads(files["result.json"])
    assert (job["n_total_trials"], job["stats"]["n_completed_trials"]) == (made.plan.total, len(made.rows))
    assert job["stats"]["n_errored_trials"] == made.summary.errors > 0
    [stats] = job["stats"]["evals"].values()
    assert stats["metrics"] == [{"mean": pytest.approx(made.summary.score)}]
    for row in made.rows:
        name = file_name(*row.key)
        trial = json.loads(files[f"{name}/result.json"])
        assert (trial["task_name"], trial["trial_name"]) == (row.task_id, name)
        assert trial["verifier_result"] == (None if row.score is None else {"rewards": {"reward": row.score}})
        assert (trial["exception_info"] is None) == (row.status != "error")
        assert json.loads(files[f"{name}/config.json"]) == trial["config"]
        assert (f"{name}/verifier/reward.txt" in files) == (row.score is not None)
        assert trial["started_at"] <= trial["agent_execution"]["finished_at"] <= trial["finished_at"]


def test_job_is_graded_again_from_what_was_judged(tmp_path: Path) -> None:
    """The directory that is written is one that `grade` takes."""
    run = load_run(constant_run(tmp_path, "real", "42"))
    for path, data in run_files(run, "harbor"):
        (tmp_path / "job" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "job" / path).write_bytes(data)
    with open_samples(tmp_path / "job", dict.fromkeys(ANSWERS, CandidateKind.TEXT)) as samples:
        assert len(samples) == len(ANSWERS)
        line = samples.line("one-0", 1)
    assert line is not None
    assert json.loads(line.data) == {"task_id": "one-0", "solution": "42"}


# Everything


@pytest.mark.parametrize("style", OF_ONE_RUN)
def test_text_of_a_hostile_run_is_printable_ascii_and_exact(hostile: Run, style: str) -> None:
    written = text(hostile, style)
    assert written.isascii()
    assert not controls_in(written, keep="\n")
    if style == "inspect":
        log = json.loads(written)
        assert [sample["id"] for sample in log["samples"]] == list(TEXTS.values())
        assert all(sample["output"]["completion"] == sample["id"] for sample in log["samples"])


def test_directory_of_a_hostile_run_has_harmless_names(hostile: Run) -> None:
    files = list(run_files(hostile, "harbor"))
    assert len({name.casefold() for name, _ in files}) == len(files)
    for name, data in files:
        assert re.fullmatch(r"([a-z0-9][a-z0-9._-]*/)*[a-z0-9][a-z0-9._-]*", name), name
        if name.endswith(".json"):
            assert data.isascii()
            assert not controls_in(data.decode(), keep="\n")


@pytest.mark.parametrize("name", CORPUS)
def test_name_of_a_file_is_harmless_whatever_the_task_is_called(name: str) -> None:
    made = file_name(CORPUS[name], 3)
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,95}__3", made)
    assert made != file_name(CORPUS[name] + "x", 3)


def test_names_differ_where_tasks_do() -> None:
    names = [file_name(task, attempt) for task in ("a", "A", "a/b", "a_b", "a__1", "") for attempt in (1, 11)]
    assert len({name.casefold() for name in names}) == len(names)


def test_private_values_are_in_no_format_and_the_public_question_is(tmp_path: Path) -> None:
    pack = write_control_pack(tmp_path / "pack", {"seen-task": (987654321,)})
    run = load_run(constant_run(tmp_path, "private", "5", pack=pack))
    written = text(run, "inspect") + "".join(data.decode() for _, data in run_files(run, "harbor"))
    assert "987654321" not in written
    assert "Which number is seen-task?" in written
    assert not any(task.digest.removeprefix("sha256:") in written for task in run.plan.tasks)


def test_checksum_of_a_trial_is_the_same_whatever_the_answer_is(tmp_path: Path) -> None:
    checksums = set()
    for number in (1, 2):
        pack = write_control_pack(tmp_path / f"pack-{number}", {"seen-task": (number,)})
        run = load_run(constant_run(tmp_path, f"run-{number}", "5", pack=pack))
        files = dict(run_files(run, "harbor"))
        checksums.add(json.loads(files[f"{file_name('seen-task', 1)}/result.json"])["task_checksum"])
    assert len(checksums) == 1
    assert re.fullmatch("[0-9a-f]{64}", checksums.pop())


def test_record_that_changed_since_it_was_checked_is_not_exported(tmp_path: Path) -> None:
    run = load_run(constant_run(tmp_path, "real", "42"))
    path = run.directory / "candidates.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"task_id":"one-0"', b'"task_id":"one-9"'))
    with pytest.raises(IntegrityError, match="changed since it was checked"):
        text(run, "inspect")
