"""The runs of a directory: what is listed, what is not opened, and that no link leads out."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from securebench.reports.view.library import Library, run_id
from securebench.testing.synthetic_run import SyntheticRun, write_run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_run(tmp_path / "root/a", SyntheticRun(run_id="first", tasks=4))
    write_run(tmp_path / "root/deep/er/b", SyntheticRun(run_id="second", tasks=8, attempts=1))
    write_run(tmp_path / "outside", SyntheticRun(run_id="secret", tasks=2))
    return tmp_path / "root"


def test_runs_are_found_beneath_with_what_they_say_of_themselves(root: Path) -> None:
    listed = {one.path: one for one in Library(root).runs()}
    assert set(listed) == {"a", "deep/er/b"}
    one = listed["a"]
    assert (one.run_id, one.benchmark, one.harness, one.planned, one.recorded) == (
        "first",
        "synthetic-suite",
        "chat",
        12,
        12,
    )
    assert one.state == "sealed"
    assert one.score is not None
    assert one.low is not None
    assert one.high is not None
    assert one.low < one.score <= one.high


def test_a_run_directory_itself_can_be_shown(root: Path) -> None:
    (one,) = Library(root / "a").runs()
    assert (one.path, one.run_id) == (".", "first")
    assert Library(root / "a").find(one.id) == (root / "a", "")


def test_what_lies_in_a_run_is_the_runs(root: Path) -> None:
    write_run(root / "a/candidates/inner", SyntheticRun(tasks=1))
    assert len(Library(root).runs()) == 2


def test_links_to_runs_elsewhere_are_not_followed(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "outside")
    (root / "here").symlink_to(root / "a")
    library = Library(root)
    assert {one.run_id for one in library.runs()} == {"first", "second"}
    assert library.find(run_id("link")) is None


@pytest.mark.parametrize("name", ["plan.json", "candidates.jsonl", "summary.json", "seal.json", "events.jsonl"])
def test_a_run_of_linked_files_is_listed_and_not_opened(root: Path, name: str) -> None:
    (root / "a" / name).unlink(missing_ok=True)
    (root / "a" / name).symlink_to(root.parent / "outside/summary.json")
    library = Library(root)
    one = next(one for one in library.runs() if one.path == "a")
    assert (one.state, one.score, one.run_id) == ("refused", None, "a")
    assert "is a link" in one.problem
    found = library.find(one.id)
    assert found is not None
    assert "is a link" in found[1]


@pytest.mark.parametrize("name", ["candidates.jsonl", "summary.json", "events.jsonl"])
def test_a_fifo_holds_nobody_up(root: Path, name: str) -> None:
    (root / "a" / name).unlink(missing_ok=True)
    os.mkfifo(root / "a" / name)
    one = next(one for one in Library(root).runs() if one.path == "a")
    assert one.state == "refused"


def test_candidates_that_lead_elsewhere_are_not_opened(root: Path) -> None:
    (root / "deep/er/b/candidates").rename(root.parent / "moved")
    (root / "deep/er/b/candidates").symlink_to(root.parent / "moved")
    assert [one.state for one in Library(root).runs() if one.path != "a"] == ["refused"]


def test_a_record_file_beyond_all_measure_is_not_opened(root: Path) -> None:
    with (root / "a/candidates.jsonl").open("r+b") as file:
        file.truncate(3 * 2**30)
    one = next(one for one in Library(root).runs() if one.path == "a")
    assert one.state == "refused"
    assert "too many to show" in one.problem


@pytest.mark.parametrize(
    "summary",
    [
        "",
        "null",
        "[1]",
        "{",
        json.dumps({"run_id": 7, "score": "1", "interval": [], "planned": -1, "total": 10**30}),
        json.dumps({"run_id": "x" * 10_000, "score": 5.0, "interval": {"low": None}, "cost_usd": -3}),
        "{" + " " * (5 * 2**20) + "}",
    ],
)
def test_summaries_of_any_content_are_listed(root: Path, summary: str) -> None:
    (root / "a/summary.json").write_text(summary)
    one = next(one for one in Library(root).runs() if one.path == "a")
    assert one.score is None
    assert len(one.run_id) <= 200


def test_a_run_that_is_written_to_is_running_and_later_it_has_stopped(root: Path) -> None:
    (root / "a/seal.json").unlink()
    (root / "a/summary.json").unlink()
    start = {"event": "run_start", "time": 1.0, "run_id": "first", "benchmark_id": "b", "planned": 12, "done_before": 0}
    (root / "a/events.jsonl").write_text(json.dumps(start) + "\n")
    now = (root / "a/events.jsonl").stat().st_mtime
    one = next(one for one in Library(root, lambda: now + 5).runs() if one.path == "a")
    assert (one.state, one.run_id, one.planned) == ("running", "first", 12)
    one = next(one for one in Library(root, lambda: now + 5000).runs() if one.path == "a")
    assert (one.state, one.recorded) == ("stopped", len((root / "a/candidates.jsonl").read_bytes().splitlines()))


def test_a_run_whose_engine_holds_it_is_running_however_quiet_it_is(root: Path) -> None:
    (root / "a/seal.json").unlink()
    (root / "a/events.jsonl").write_text('{"event":"run_start"}\n')

    def state() -> str:
        return next(one for one in Library(root, lambda: time.time() + 5000).runs() if one.path == "a").state

    assert state() == "stopped"
    with (root / "a/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert state() == "running"
    assert state() == "stopped"


def test_a_change_is_seen(root: Path) -> None:
    library = Library(root)
    before = {one.path: one.score for one in library.runs()}
    told = json.loads((root / "a/summary.json").read_text()) | {"score": 0.125}
    (root / "a/summary.json").write_text(json.dumps(told))
    after = {one.path: one.score for one in library.runs()}
    assert (after["a"], after["deep/er/b"]) == (0.125, before["deep/er/b"])


def test_names_of_any_bytes_are_listed_and_found(root: Path) -> None:
    strange = os.fsdecode(b"\xff<script>\n")
    (root / "a").rename(root / strange)
    library = Library(root)
    one = next(one for one in library.runs() if one.run_id == "first")
    assert library.find(one.id) == (root / strange, "")
