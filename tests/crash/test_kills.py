"""The engine is killed at random moments and started again, until the run is complete; and then everything is there.

`SECUREBENCH_CRASHES=200` kills it that often; without, a few times. `SECUREBENCH_CRASH_SEED` repeats the moments of an
earlier run as far as a clock allows."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.crash.world import (
    NOTHING,
    KilledRun,
    Moment,
    after,
    check_chain,
    kill,
    leftovers_soon,
    once,
    questions,
    written,
)
from tests.e2e.workbench import need_bubblewrap, securebench

from securebench.records.seal import open_statement

CRASHES = int(os.environ.get("SECUREBENCH_CRASHES", "8"))
SEED = int(os.environ.get("SECUREBENCH_CRASH_SEED", "8"))
TASKS, ATTEMPTS = 40, 2


def _moment(dice: random.Random, run: KilledRun) -> Moment:
    """Anywhere in loading and in working, or close to what takes only milliseconds: planning, writing, summing up,
    sealing."""
    jitter = dice.random() * 0.02
    kinds: dict[str, Callable[[], Moment]] = {
        "loading": lambda: after(dice.random()),
        "working": lambda: once(KilledRun.began, dice.random() * 1.5),
        "planning": lambda: once(lambda run: (run.output / "plan.json").exists(), jitter),
        "writing": lambda: once(written(run.records().count(b"\n") + dice.randint(1, 8)), jitter),
        "summing up": lambda: once(written(run.total), jitter),
        "sealing": lambda: once(lambda run: run.wrote("summary.json"), jitter / 4),
        "sealed": lambda: once(lambda run: run.wrote("seal.json"), jitter / 4),
    }
    return kinds[dice.choice([*kinds, "working", "working", "writing"])]()


def _killed_until_complete(run: KilledRun, dice: random.Random, kills: int, stages: Counter[str]) -> None:
    """Until the run is complete, or it was killed as often as it may be."""
    while stages.total() < kills:
        engine = run.start()
        came = _moment(dice, run)(run, engine)
        if came:
            kill(engine)
        run.check_kept()
        if not came and engine.returncode == 0:
            return
        assert came, f"the engine ended with {engine.returncode}: {run.said()}"
        stages[run.stage()] += 1
        if run.kept and dice.random() < 0.25:
            last = run.kept.splitlines(keepends=True)[-1]
            run.tear(last[: dice.randint(1, len(last) - 1)])


def _complete(run: KilledRun) -> None:
    """Start it once more and let it come to its end."""
    assert run.finish() == 0, run.said()
    run.check_kept()


def _check_complete(run: KilledRun) -> None:
    records = check_chain(run.output, run.records())
    assert {(record["task_id"], record["attempt"]) for record in records} == {
        (row["id"], attempt) for row in run.rows for attempt in range(1, run.attempts + 1)
    }
    assert all(record["passed"] for record in records)
    starts = Counter(
        (event["task_id"], event["attempt"])
        for event in map(json.loads, filter(None, (run.output / "events.jsonl").read_text().splitlines()))
        if event["event"] == "agent_started"
    )
    assert {(record["task_id"], record["attempt"]): record["lost_starts"] + 1 for record in records} == starts
    run.check_torn()
    summary = json.loads((run.output / "summary.json").read_text())
    assert (summary["passed"], summary["verification_status"]) == (run.total, "complete")
    statement = open_statement((run.output / "seal.json").read_bytes(), "seal.json")
    assert statement.predicate.status == "complete"
    assert statement.predicate.counts.passed == statement.predicate.chain.records == run.total
    assert statement.subjects == {
        name: hashlib.sha256((run.output / name).read_bytes()).hexdigest()
        for name in ("plan.json", "candidates.jsonl", "summary.json")
    }
    assert not list(run.output.glob(".*.new"))
    verified = securebench("verify", run.output)
    assert verified.code == 0, verified.out + verified.err


def _check_nothing_left(run: KilledRun) -> None:
    assert securebench("doctor", "--clean", env={"TMPDIR": str(run.temporary)}).code == 0
    assert leftovers_soon(run.pids, run.temporary) == NOTHING


def test_killed_at_random_moments_every_attempt_is_recorded_exactly_once(tmp_path: Path) -> None:
    need_bubblewrap()
    dice, stages, runs = random.Random(SEED), Counter[str](), 0
    while stages.total() < CRASHES:
        run = KilledRun(tmp_path / f"run-{runs}", questions(TASKS), ATTEMPTS)
        _killed_until_complete(run, dice, CRASHES, stages)
        _complete(run)
        _check_complete(run)
        _check_nothing_left(run)
        runs += 1
    print(f"{CRASHES} kills in {runs} runs: {dict(stages)}")


def test_half_a_line_is_set_aside_and_said(tmp_path: Path) -> None:
    need_bubblewrap()
    run = KilledRun(tmp_path / "run", questions(8))
    engine = run.start()
    assert once(written(2), 0.0)(run, engine)
    kill(engine)
    run.check_kept()
    run.tear(b'{"record_version":1,"run_')
    _complete(run)
    assert any("incomplete (25 bytes" in notice for notice in run.notices())
    _check_complete(run)


def test_what_a_killed_engine_leaves_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """The positive control of the search for leftovers, and what the janitor is for."""
    need_bubblewrap()
    run = KilledRun(tmp_path / "run", questions(16), 1, "sleep 0.4; echo 42")
    engine = run.start()
    assert once(written(1), 0.1)(run, engine)
    kill(engine)
    left = leftovers_soon(run.pids, run.temporary, 2)
    assert left["directories"], "a killed engine leaves nothing? then this test no longer shows anything"
    left = left if left["processes"] == [] else leftovers_soon(run.pids, run.temporary, 10)
    assert left["processes"] == []
    _complete(run)
    assert any("removed what a killed run had left" in notice for notice in run.notices())
    assert leftovers_soon(run.pids, run.temporary) == NOTHING


def test_an_agent_that_had_started_is_started_again_and_its_record_says_so(tmp_path: Path) -> None:
    need_bubblewrap()
    run = KilledRun(tmp_path / "run", questions(16), 1, "sleep 0.5; echo 42")
    engine = run.start()
    assert once(lambda run: len(run.events("agent_started")) >= 12, 0.1)(run, engine)
    kill(engine)
    run.check_kept()
    started = {event["task_id"] for event in run.events("agent_started")}
    lost = started - {record["task_id"] for record in run.parsed()}
    assert lost
    _complete(run)
    _check_complete(run)
    assert {record["task_id"] for record in run.parsed() if record["lost_starts"]} == lost
