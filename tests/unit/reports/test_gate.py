"""A gate holds what it says, and what cannot be said does not pass it."""

from __future__ import annotations

import fcntl
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.control_runs import constant_run, tampered, write_control_pack

from securebench.records.keys import load_signing_key, new_key
from securebench.reports.gate.conditions import (
    Assurance,
    Complete,
    Condition,
    MaxCost,
    MaxDrop,
    MaxErrors,
    MinLowerBound,
    MinScore,
    MinTasks,
    Sealed,
    WholePack,
    check_gate,
)
from securebench.reports.gate.outputs import annotate, lines, markdown
from securebench.reports.runs import Run, load_run
from securebench.testing.synthetic_run import SyntheticRun, write_run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(place: Path) -> Run:
    """9 of 14 tasks pass: 64.3 %, interval from 38.8 %."""
    return load_run(constant_run(place, "run", "42", pack=write_control_pack(place / "pack")))


@pytest.fixture(scope="module")
def worse(place: Path, run: Run) -> Run:
    return load_run(constant_run(place, "worse", "43", pack=place / "pack"))


@pytest.fixture(scope="module")
def large(place: Path) -> tuple[Run, Run]:
    pack = write_control_pack(place / "large", {f"t{n}": (42,) if n % 3 else (42, 43) for n in range(60)})
    good, bad = (load_run(constant_run(place, f"answers-{answer}", answer, pack=pack)) for answer in ("42", "43"))
    return good, bad


@pytest.fixture(scope="module")
def faulty(place: Path) -> Run:
    return load_run(write_run(place / "faulty", SyntheticRun(tasks=60, attempts=1, faults=0.2)))


def held(run: Run, condition: Condition) -> bool:
    [intact, outcome] = check_gate(run, [condition]).outcomes
    assert intact.held, intact.words
    return outcome.held


@pytest.mark.parametrize(
    "condition, expected",
    [
        (MinScore(0.64), True),
        (MinScore(9 / 14), True),
        (MinScore(0.65), False),
        (MinLowerBound(0.38), True),
        (MinLowerBound(0.4), False),
        (MinTasks(14), True),
        (MinTasks(15), False),
        (MaxErrors(0), True),
        (MaxCost(0.0), True),
        (Sealed(), True),
        (Sealed("ed25519:" + "0" * 64), False),
        (Complete(), True),
        (WholePack(), True),
        (Assurance(frozenset({"pure"})), True),
        (Assurance(frozenset({"pure", "isolated"})), True),
        (Assurance(frozenset({"isolated"})), False),
    ],
)
def test_condition_holds_just_where_it_should(run: Run, condition: Condition, expected: bool) -> None:
    assert held(run, condition) is expected


def test_drop_is_measured_task_by_task(run: Run, worse: Run) -> None:
    assert not held(worse, MaxDrop(run, 0.0))
    assert not held(worse, MaxDrop(run, 0.21))
    assert held(worse, MaxDrop(run, 3 / 14))
    assert held(run, MaxDrop(worse, 0.0))


def test_drop_that_chance_explains_can_be_allowed(run: Run, worse: Run, large: tuple[Run, Run]) -> None:
    assert held(worse, MaxDrop(run, 0.0, significant=True))
    good, bad = large
    assert not held(bad, MaxDrop(good, 0.0, significant=True))
    assert held(bad, MaxDrop(good, 0.7, significant=True))
    [_, outcome] = check_gate(worse, [MaxDrop(run, 0.0, significant=True)]).outcomes
    assert "chance can explain" in outcome.words


def test_base_that_was_changed_is_no_base(place: Path, run: Run, worse: Run) -> None:
    base = Path(shutil.copytree(run.directory, place / "cut"))
    cut = load_run(tampered(base, '"score":1.0', '"score":0.1'))
    [_, outcome] = check_gate(worse, [MaxDrop(cut, 1.0)]).outcomes
    assert not outcome.held
    assert "is not as it was written" in outcome.words


def test_base_without_a_task_in_common_does_not_hold(run: Run, large: tuple[Run, Run]) -> None:
    [_, outcome] = check_gate(run, [MaxDrop(large[0], 1.0)]).outcomes
    assert not outcome.held
    assert "no task in common" in outcome.words


def test_what_differs_from_the_base_is_noted(place: Path, run: Run) -> None:
    part = load_run(constant_run(place, "part", "42", pack=place / "pack", limit=10))
    [_, outcome] = check_gate(run, [MaxDrop(part, 0.0)]).outcomes
    assert outcome.held
    assert any("not of the whole pack" in note for note in outcome.notes)
    assert not held(part, WholePack())


def test_faults_of_the_host_are_counted(faulty: Run) -> None:
    errors = faulty.summary.errors
    assert errors > 3
    assert held(faulty, MaxErrors(errors))
    assert not held(faulty, MaxErrors(errors - 1))
    assert not held(faulty, Complete())


def test_cost_that_is_not_known_is_not_little(faulty: Run) -> None:
    assert faulty.summary.cost_usd is not None
    assert held(faulty, MaxCost(faulty.summary.cost_usd))
    assert not held(faulty, MaxCost(faulty.summary.cost_usd - 0.01))
    unknown = replace(faulty, summary=replace(faulty.summary, cost_usd=None, cost_unknown=3))
    assert not held(unknown, MaxCost(1e9))


def test_run_in_which_nothing_was_judged_passes_nothing(run: Run) -> None:
    rows = tuple(replace(row, status="error", passed=None, score=None, assurance=None) for row in run.rows)
    nothing = replace(run, rows=rows, summary=replace(run.summary, score_sum=0.0, verified=0, errors=14))
    for condition in (MinScore(0.0), MinLowerBound(0.0), MinTasks(1), Assurance(frozenset({"pure"}))):
        assert not held(nothing, condition)


def test_changed_or_unfinished_run_passes_no_gate(place: Path, run: Run) -> None:
    changed = Path(shutil.copytree(run.directory, place / "changed"))
    gate = check_gate(load_run(tampered(changed, '"score":0.0', '"score":1.0')), [MinScore(0.0)])
    assert not gate.open
    assert gate.outcomes[0].condition == "intact"
    unfinished = Path(shutil.copytree(run.directory, place / "unfinished"))
    lines_ = (unfinished / "candidates.jsonl").read_bytes().splitlines(keepends=True)
    (unfinished / "candidates.jsonl").write_bytes(b"".join(lines_[:9]))
    for name in ("seal.json", "summary.json"):
        (unfinished / name).unlink()
    gate = check_gate(load_run(unfinished), [MinScore(0.9)])
    assert [outcome.held for outcome in gate.outcomes] == [False, True]  # all nine pass, and five are missing


def test_unsealed_run_is_intact_but_not_sealed(place: Path) -> None:
    unsealed = load_run(constant_run(place, "unsealed", "42", pack=place / "pack", records={"sign": False}))
    gate = check_gate(unsealed, [Sealed()])
    assert [outcome.held for outcome in gate.outcomes] == [True, False]
    assert any("is not sealed" in note for note in gate.outcomes[0].notes)


def test_seal_must_be_by_the_key_that_was_named(place: Path) -> None:
    key = new_key("mine", place / "keys")
    mine = load_run(
        constant_run(place, "mine", "42", pack=place / "pack", records={"key": str(place / "keys/mine.key")})
    )
    assert held(mine, Sealed(key.id))
    assert not held(mine, Sealed("ed25519:" + "1" * 64))


def test_every_condition_is_looked_at_and_has_its_line(run: Run) -> None:
    gate = check_gate(run, [MinScore(0.99), MinTasks(1), MinTasks(99)])
    assert [outcome.held for outcome in gate.outcomes] == [True, False, True, False]
    assert not gate.open
    written = list(lines(gate))
    assert [line[:4] for line in written[:4]] == ["ok  ", "FAIL", "ok  ", "FAIL"]
    assert written[-1] == "run: NOT PASSED, 2 of 4 conditions hold"
    assert [line.partition(" ")[0] for line in annotate(gate)] == ["::notice", "::error", "::notice", "::error"]
    assert markdown(gate).startswith("### ❌ Not passed: <code>run</code>\n")
    assert gate.as_json()["open"] is False
    assert check_gate(run, [MinScore(0.5)]).open


def test_a_seal_that_names_nobody_is_noted_and_can_be_refused(tmp_path: Path) -> None:
    """Whoever can write the files of a run can seal it anew with a key made for that."""
    mine = new_key("mine", tmp_path / "keys")
    signing = load_signing_key("mine", tmp_path / "keys")
    anybody = load_run(write_run(tmp_path / "anybody", SyntheticRun(tasks=4)))
    known = load_run(write_run(tmp_path / "known", SyntheticRun(tasks=4, key=signing)), {mine.id: "mine"})
    sealed = Sealed().check(anybody)
    assert sealed.held
    assert "--require-trusted" in sealed.notes[0]
    refused = Sealed(trusted=True).check(anybody)
    assert (refused.condition, refused.held) == ("require-trusted", False)
    accepted = Sealed(trusted=True).check(known)
    assert (accepted.held, accepted.notes) == (True, ())
    assert Sealed().check(known).notes == ()


@pytest.mark.parametrize("held_by_an_engine", [True, False])
def test_gate_is_shut_for_a_run_that_did_not_end(tmp_path: Path, held_by_an_engine: bool) -> None:
    place = write_run(tmp_path / "run", SyntheticRun(tasks=4))
    for name in ("seal.json", "summary.json"):
        (place / name).unlink()
    lines = (place / "candidates.jsonl").read_bytes().splitlines(keepends=True)
    (place / "candidates.jsonl").write_bytes(b"".join(lines[:7]))
    with (place / ".lock").open("w") as lock:
        if held_by_an_engine:
            fcntl.flock(lock, fcntl.LOCK_EX)
        gate = check_gate(load_run(place), [MinScore(0.0), Sealed()])
    assert [outcome.held for outcome in gate.outcomes] == [False, True, False]
