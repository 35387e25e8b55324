"""Runs as reports read them: what counts, what state their seal is in, and nothing a stranger's directory can do."""

from __future__ import annotations

import json
import os
import shutil
import time
import tracemalloc
from pathlib import Path

import pytest
from tests.control_runs import ANSWERS, constant_run, tampered
from tests.hostile_run import TEXTS, hostile_run
from tests.injection import BYTES

from securebench.errors import ConfigError, IntegrityError, StoreError
from securebench.records.keys import new_key
from securebench.records.plan import load_plan
from securebench.records.summary import VOLATILE
from securebench.reports.export.junit import junit_lines
from securebench.reports.gate.conditions import MinTasks, check_gate
from securebench.reports.rows import difficulty_of
from securebench.reports.runs import load_run, load_runs
from securebench.reports.tables import TASKS
from securebench.testing.synthetic_run import SyntheticRun, write_run


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return constant_run(tmp_path_factory.mktemp("sealed"), "real", "42", attempts=2)


@pytest.fixture
def run(sealed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed, tmp_path / "run"))


def test_rows_are_the_attempts_in_the_order_of_the_plan(sealed: Path) -> None:
    run = load_run(sealed)
    assert [row.key for row in run.rows] == [(task, attempt) for task in ANSWERS for attempt in (1, 2)]
    row = run.rows[0]
    assert (row.family, row.tags, row.difficulty, row.status, row.passed, row.score) == (
        "short_answer", ("easy",), "easy", "passed", True, 1.0,
    )  # fmt: skip
    assert row.assurance == "pure"
    assert row.candidate_digest is not None
    assert row.started_at is not None
    failed = run.rows[-1]
    assert (failed.status, failed.failure_reason, failed.passed) == ("failed", "wrong_answer", False)


def test_totals_are_those_of_the_run_counted_again(sealed: Path) -> None:
    written = json.loads((sealed / "summary.json").read_text())
    counted = json.loads(json.dumps(load_run(sealed).summary.as_json()))
    assert {name for name in written if written[name] != counted[name]} <= VOLATILE


def test_sealed_run_says_so(sealed: Path) -> None:
    run = load_run(sealed)
    assert (run.seal_status, run.sealed) == ("complete", True)


def test_run_without_a_seal_is_unsealed_and_not_broken(run: Path) -> None:
    (run / "seal.json").unlink()
    read = load_run(run)
    assert (read.seal_status, read.sealed) == ("unsealed", False)


@pytest.mark.parametrize("seal", ["{}", "", "null"])
def test_seal_that_is_there_and_does_not_hold_is_broken_and_not_unsealed(run: Path, seal: str) -> None:
    (run / "seal.json").write_text(seal)
    read = load_run(run)
    assert read.seal_status == "broken"
    assert not check_gate(read, [MinTasks(1)]).open


def test_killed_run_is_unsealed_and_its_attempts_are_missing(run: Path) -> None:
    for name in ("seal.json", "summary.json"):
        (run / name).unlink()
    lines = (run / "candidates.jsonl").read_bytes().splitlines(keepends=True)
    (run / "candidates.jsonl").write_bytes(b"".join(lines[:7]))
    read = load_run(run)
    assert (read.seal_status, len(read.rows), read.plan.total) == ("unsealed", 7, 28)
    assert sum(map(len, read.attempts().values())) == 7
    assert len(read.attempts()) == len(ANSWERS)


@pytest.mark.parametrize("sealed_still", [True, False])
def test_changed_record_breaks_the_run(run: Path, sealed_still: bool) -> None:
    tampered(run, '"score":0.0', '"score":0.9')
    if not sealed_still:
        (run / "seal.json").unlink()
    tampered(run, '"attempt":1', '"attempt": 1')
    assert load_run(run).seal_status == "broken"


def test_record_of_nothing_planned_is_no_row(run: Path) -> None:
    tampered(run, '"task_id":"both-3"', '"task_id":"both-9"')
    tampered(run, '"task_id":"one-0","attempt":1', '"task_id":"one-0","attempt":99999999999999999999')
    read = load_run(run)
    assert len(read.rows) == 26
    assert read.summary.total == 26
    assert read.seal_status == "broken"


def test_record_that_is_there_twice_counts_once(run: Path) -> None:
    lines = (run / "candidates.jsonl").read_bytes().splitlines(keepends=True)
    (run / "candidates.jsonl").write_bytes(b"".join([*lines, lines[0]]))
    assert len(load_run(run).rows) == 28


def test_fault_that_was_tried_again_counts_as_the_last_record(tmp_path: Path) -> None:
    faults = load_run(write_run(tmp_path / "run", SyntheticRun(tasks=40, attempts=1, faults=0.3)))
    assert faults.summary.errors == sum(row.status == "error" for row in faults.rows) > 0
    assert all(not row.judged and row.score is None for row in faults.rows if row.status == "error")
    assert faults.seal_status == "interrupted"


def test_fields_that_an_older_record_lacks_are_nothing(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "candidates.jsonl").read_text().splitlines()]
    for record in lines:
        for name in ("timings", "usage", "repeats", "lost_starts", "failure_message", "controls", "cost"):
            del record[name]
    (run / "candidates.jsonl").write_text("".join(json.dumps(record) + "\n" for record in lines))
    row = load_run(run).rows[0]
    assert (row.started_at, row.produce_seconds, row.requests, row.cost_usd) == (None, None, None, None)
    assert (row.retries, row.lost_starts, row.failure_message) == (0, 0, "")


def test_values_that_no_sum_can_take_are_nothing(tmp_path: Path) -> None:
    run = load_run(hostile_run(tmp_path / "run"))
    assert len(run.rows) == len(TEXTS)
    assert all(row.input_tokens is None and row.output_tokens is None and row.cost_usd is None for row in run.rows)
    assert all(row.lost_starts == 0 and row.produce_seconds is None for row in run.rows)
    assert run.seal_status == "interrupted"


@pytest.mark.parametrize("name", BYTES)
@pytest.mark.parametrize("file", ["candidates.jsonl", "summary.json", "seal.json", "checkpoints.jsonl"])
def test_bytes_that_are_no_text_break_the_run_and_nothing_else(run: Path, file: str, name: str) -> None:
    (run / file).write_bytes(BYTES[name] + b"\n")
    assert load_run(run).seal_status in {"broken", "unsealed"}


@pytest.mark.parametrize("name", BYTES)
def test_plan_that_is_none_is_refused(run: Path, name: str) -> None:
    (run / "plan.json").write_bytes(BYTES[name])
    with pytest.raises(IntegrityError, match=r"plan\.json"):
        load_run(run)


@pytest.mark.parametrize("file", ["candidates.jsonl", "seal.json", "summary.json"])
def test_fifo_and_link_hold_nobody_up_and_lead_nowhere(run: Path, tmp_path: Path, file: str) -> None:
    (run / file).unlink()
    os.mkfifo(run / file)
    assert load_run(run).seal_status in {"broken", "unsealed"}
    if file != "candidates.jsonl":
        (run / file).unlink()
        (tmp_path / "elsewhere").write_text("{}")
        (run / file).symlink_to(tmp_path / "elsewhere")
        assert load_run(run).seal_status in {"broken", "unsealed"}


def test_runs_have_labels_that_tell_them_apart(sealed: Path, tmp_path: Path) -> None:
    for name in ("x/one", "y/one", "other"):
        shutil.copytree(sealed, tmp_path / name)
    labels = [run.label for run in load_runs([tmp_path])]
    assert labels == [f"real ({tmp_path.name}/other)", "real (x/one)", "real (y/one)"]
    assert load_runs([sealed, sealed])[0].label == "real"
    assert len(load_runs([sealed, sealed])) == 1
    with pytest.raises(ConfigError, match="no such directory"):
        load_runs([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no run"):
        load_runs([tmp_path / "empty"])


def test_runs_of_one_name_in_several_places_go_by_the_end_of_their_paths(sealed: Path, tmp_path: Path) -> None:
    for name in ("my-pack/runs/real", "pk2/runs/real"):
        shutil.copytree(sealed, tmp_path / name)
    assert [run.label for run in load_runs([tmp_path])] == ["my-pack/runs/real", "pk2/runs/real"]


def test_key_that_is_trusted_is_named(tmp_path: Path) -> None:
    key = new_key("mine", tmp_path / "keys")
    out = constant_run(tmp_path, "mine", "42", records={"key": str(tmp_path / "keys" / "mine.key")})
    verification = load_run(out, {key.id: "mine"}).verification
    assert verification.key is not None
    assert verification.key.name == "mine"


def test_rows_of_thousands_of_attempts_take_little_memory(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", SyntheticRun(tasks=500, attempts=3, transcripts=0.0, lines=200))
    size = (directory / "candidates.jsonl").stat().st_size
    tracemalloc.start()
    try:
        run = load_run(directory)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(run.rows) == 1500
    assert size > 8_000_000
    assert peak < 6_000_000  # the file is never held, and a row is small


def test_difficulty_is_a_tag() -> None:
    assert difficulty_of(("a", "hard")) == "hard"
    assert difficulty_of(("hard", "difficulty:level 3")) == "level 3"
    assert difficulty_of(("a",)) is None


def test_missing_records_are_an_error_of_the_store_only_where_they_cannot_be_read(run: Path) -> None:
    (run / "candidates.jsonl").unlink()
    assert load_run(run).rows == ()
    shutil.rmtree(run)
    with pytest.raises((IntegrityError, StoreError)):
        load_run(run)


def test_plan_of_more_than_anybody_can_record_holds_nobody_up(run: Path) -> None:
    """A stranger's plan may name ten million attempts at every task."""
    plan, _ = load_plan(run)
    tasks = tuple(task.model_copy(update={"attempts": 10_000_000}) for task in plan.tasks)
    (run / "plan.json").write_bytes(plan.model_copy(update={"tasks": tasks}).encode())
    began = time.process_time()
    read = load_run(run)
    assert (len(read.rows), read.plan.total) == (28, 140_000_000)
    assert sum(1 for line in junit_lines([read]) if line.startswith("<testcase")) == 10_028
    assert next(iter(TASKS.rows([read])))[4] == 10_000_000
    assert time.process_time() - began < 5
