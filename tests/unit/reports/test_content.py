"""What a report is made of: scores in parts, spreads, notices and integrity, counted from rows."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from pathlib import Path

import pytest

from securebench.records.keys import load_signing_key, new_key
from securebench.reports.content import Content, content_of
from securebench.reports.facts import facts, notices
from securebench.reports.integrity import integrity_of
from securebench.reports.runs import load_run
from securebench.reports.scores import groupings, score_of
from securebench.reports.words import money_text
from securebench.testing.synthetic_run import SyntheticRun, write_run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("content") / "run", SyntheticRun(tasks=240))


@pytest.fixture(scope="module")
def content(place: Path) -> Content:
    return content_of(load_run(place))


def test_the_score_is_the_summarys(content: Content) -> None:
    summary, estimate = content.run.summary, content.whole.estimate
    assert estimate is not None
    assert summary.interval is not None
    assert estimate.mean == pytest.approx(summary.score)
    assert (estimate.interval.low, estimate.interval.high) == (summary.interval["low"], summary.interval["high"])
    assert content.whole.counts["passed"] == summary.passed


def test_parts_make_the_whole(content: Content) -> None:
    ways = {one.by: one for one in content.groupings}
    assert set(ways) == {"family", "difficulty", "tag", "assurance"}
    for by in ("family", "difficulty", "assurance"):
        assert sum(part.judged for part in ways[by].parts) == content.whole.judged
    assert [part.name for part in ways["difficulty"].parts] == ["easy", "medium", "hard"]
    assert [part.name for part in ways["assurance"].parts] == ["pure", "isolated", "shared_process"]
    assert {part.name for part in ways["tag"].parts} == {"algebra", "parsing", "networks", "geometry"}


def test_what_has_one_part_is_not_cut(content: Content) -> None:
    rows = [replace(row, tags=(), difficulty=None, family="one", assurance="pure") for row in content.run.rows]
    assert groupings(rows) == ()


def test_pass_at_k_grows_and_pass_hat_k_shrinks(content: Content) -> None:
    one = [content.passes[k][0].mean for k in (1, 2, 3)]
    every = [content.passes[k][1].mean for k in (1, 2, 3)]
    assert one == sorted(one)
    assert every == sorted(every, reverse=True)
    assert one[0] == pytest.approx(every[0])


def test_spreads_are_ordered_and_add_up(content: Content) -> None:
    time, tokens, cost = content.spreads
    assert [time.name, tokens.name, cost.name] == ["time", "tokens", "cost"]
    for spread in content.spreads:
        assert len(spread.values) == 720
        assert spread.quantile(0) <= spread.quantile(0.5) <= spread.quantile(1)
    assert cost.total == pytest.approx(content.run.summary.cost_usd)


def test_tasks_are_all_there_in_the_plans_order(content: Content) -> None:
    assert [line.task.id for line in content.tasks] == [task.id for task in content.run.plan.tasks]
    assert all(len(line.attempts) == 3 for line in content.tasks)


def test_json_is_json_and_holds_no_place_of_this_machine_but_the_run(content: Content) -> None:
    text = json.dumps(content.as_json())
    assert json.loads(text)["score"] == pytest.approx(content.run.summary.score)


def test_attempts_that_were_not_judged_bound_the_score(tmp_path: Path) -> None:
    content = content_of(load_run(write_run(tmp_path / "run", SyntheticRun(tasks=40, faults=0.1))))
    assert content.bounds is not None
    assert content.whole.estimate is not None
    assert content.bounds.low < content.whole.estimate.mean < content.bounds.high
    assert any("on which the host failed" in notice and "would lie between" in notice for notice in notices(content))


def test_few_tasks_and_mixed_assurance_are_said(tmp_path: Path, content: Content) -> None:
    assert any("different assurance" in notice for notice in notices(content))
    few = content_of(load_run(write_run(tmp_path / "run", SyntheticRun(tasks=4))))
    assert any("4 tasks: the interval" in notice for notice in notices(few))


def test_nothing_judged_is_no_score(tmp_path: Path) -> None:
    content = content_of(load_run(write_run(tmp_path / "run", SyntheticRun(tasks=4, faults=1.0))))
    assert content.whole.estimate is None
    assert content.as_json()["score"] is None
    assert score_of("x", []).estimate is None


def test_facts_name_what_was_run(content: Content) -> None:
    told = dict(facts(content))
    assert told["benchmark"] == "synthetic-suite, version 1"
    assert told["model"] == "example-large"
    assert told["limits"] == "budget usd 50"
    assert told["pack digest"] == content.run.plan.pack_digest


def test_cost_of_a_passed_attempt_counts_what_failures_cost(tmp_path: Path, content: Content) -> None:
    rows = content.run.rows
    told = dict(facts(content))["cost of a passed attempt"]
    each = sum(row.cost_usd or 0 for row in rows) / sum(row.passed is True for row in rows)
    assert told.startswith(f"{money_text(each)} (95 % interval $ ")
    unknown = replace(rows[0], cost_usd=None)
    partly = content_of(replace(content.run, rows=(unknown, *rows[1:])))
    assert "cost of a passed attempt" not in dict(facts(partly))


def test_integrity_of_a_sound_run(content: Content) -> None:
    told = integrity_of(content.run)
    states = {check.name: check.state for check in told.checks}
    assert (told.state, told.verdict, told.problems) == ("pending", "Consistent, but the seal names nobody", ())
    assert states["chain and contents"] == "passed"
    assert states["seal"] == "pending", "nobody is known by a key that was made for the run"
    assert told.not_proven


def test_a_key_that_is_trusted_is_named(tmp_path: Path) -> None:
    key = new_key("mine", tmp_path / "keys")
    signing = load_signing_key("mine", tmp_path / "keys")
    run = load_run(write_run(tmp_path / "run", SyntheticRun(tasks=4, key=signing)), {key.id: "mine"})
    told = integrity_of(run)
    assert (told.state, told.verdict) == ("passed", "Verified, sealed by mine")
    seal = next(check for check in told.checks if check.name == "seal")
    assert (seal.state, "mine, whom you trust" in seal.words) == ("passed", True)


def test_a_changed_record_is_seen_and_said(tmp_path: Path) -> None:
    place = write_run(tmp_path / "run", SyntheticRun(tasks=4))
    data = (place / "candidates.jsonl").read_bytes()
    (place / "candidates.jsonl").write_bytes(data.replace(b'"task_type":"repo_patch"', b'"task_type":"repo_batch"', 1))
    told = integrity_of(load_run(place))
    assert told.state == "failed"
    assert told.verdict.startswith("Not verified: ")
    assert {check.name: check.state for check in told.checks}["chain and contents"] == "failed"
    assert told.problems


def test_tampering_that_was_caught_is_told(content: Content) -> None:
    check = next(check for check in integrity_of(content.run).checks if check.name == "tampering")
    caught = sum(row.failure_reason == "tampering" for row in content.run.rows)
    assert caught > 0
    assert (check.state, check.words.startswith(f"{caught} attempts were caught")) == ("failed", True)


def test_tasks_attempted_more_often_than_others_show_every_attempt(place: Path) -> None:
    run = load_run(place)
    often = tuple(task.model_copy(update={"attempts": 3}) for task in run.plan.tasks)
    content = content_of(replace(run, plan=run.plan.model_copy(update={"attempts": 1, "tasks": often})))
    assert {len(line.attempts) for line in content.tasks} == {3}
    assert list(content.passes) == [1, 2, 3]


def test_attempts_that_were_never_planned_are_not_missing(place: Path) -> None:
    run = load_run(place)
    once = tuple(task.model_copy(update={"attempts": 1}) for task in run.plan.tasks)
    rows = tuple(row for row in run.rows if row.attempt == 1)
    content = content_of(replace(run, rows=rows, plan=run.plan.model_copy(update={"tasks": once})))
    assert not any("missing" in line.statuses for line in content.tasks)


def test_plan_of_millions_of_attempts_lists_as_many_as_anybody_reads(place: Path) -> None:
    run = load_run(place)
    most = tuple(task.model_copy(update={"attempts": 10_000_000}) for task in run.plan.tasks[:2])
    content = content_of(replace(run, plan=run.plan.model_copy(update={"tasks": most}), rows=run.rows[:6]))
    assert [len(line.attempts) for line in content.tasks] == [1003, 1003]


def begun(place: Path, records: int) -> Path:
    """A run of which so many attempts are recorded, and that nobody ended."""
    for name in ("seal.json", "summary.json", "checkpoints.jsonl"):
        (place / name).unlink(missing_ok=True)
    lines = (place / "candidates.jsonl").read_bytes().splitlines(keepends=True)
    (place / "candidates.jsonl").write_bytes(b"".join(lines[:records]))
    return place


def test_a_run_under_way_is_neither_good_nor_bad(tmp_path: Path) -> None:
    place = begun(write_run(tmp_path / "run", SyntheticRun(tasks=4)), 7)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = integrity_of(load_run(place))
    assert (told.state, told.verdict) == ("pending", "Still running: 7 of 12 recorded, not sealed yet")
    assert told.problems == ()
    assert any("planned attempts have no record" in note for note in told.notes)
    assert not [check.name for check in told.checks if check.state == "failed"]
    told = integrity_of(load_run(place))
    assert (told.state, told.verdict) == (
        "pending",
        "Stopped before its end: 7 of 12 recorded; continue with `run --resume`",
    )


@pytest.mark.parametrize("held", [True, False])
def test_a_run_that_did_not_end_and_was_changed_is_bad(tmp_path: Path, held: bool) -> None:
    place = begun(write_run(tmp_path / "run", SyntheticRun(tasks=4)), 7)
    data = (place / "candidates.jsonl").read_bytes()
    (place / "candidates.jsonl").write_bytes(data.replace(b'"task_type":"repo_patch"', b'"task_type":"repo_batch"', 1))
    with (place / ".lock").open("w") as lock:
        if held:
            fcntl.flock(lock, fcntl.LOCK_EX)
        told = integrity_of(load_run(place))
    assert told.state == "failed"
    assert told.verdict.startswith("Not verified: ")


def test_a_run_that_is_whole_and_not_sealed_is_not_excused(tmp_path: Path) -> None:
    place = write_run(tmp_path / "run", SyntheticRun(tasks=4))
    (place / "seal.json").unlink()
    (place / "summary.json").unlink()
    told = integrity_of(load_run(place))
    assert told.state == "failed"
    assert {check.name: check.state for check in told.checks}["chain and contents"] == "failed"
