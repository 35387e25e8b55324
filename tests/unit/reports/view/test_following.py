"""A run that is followed: what its journal says as it grows, whatever somebody wrote into it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from securebench import _json
from securebench.reports.view.following import Follower, Tail

START = {"event": "run_start", "time": 100.0, "run_id": "r", "planned": 4, "done_before": 0}


def event(name: str, task: str, **more: Any) -> dict[str, Any]:
    return {"event": name, "time": 101.0, "task_id": task, "attempt": 1, **more}


def append(directory: Path, *events: Any, name: str = "events.jsonl") -> None:
    with (directory / name).open("a") as file:
        file.write("".join(json.dumps(one) + "\n" for one in events))


def test_a_run_that_goes_on_counts_no_fault_that_was_tried_again(tmp_path: Path) -> None:
    append(tmp_path, START, event("task_start", "a"), event("task_done", "a", status="passed"))
    append(tmp_path, event("task_done", "b", status="error"), event("task_start", "c"))
    append(tmp_path, START | {"done_before": 1}, event("task_done", "b", status="passed"))
    follower = Follower(tmp_path)
    follower.catch_up()
    told = follower.as_json()
    assert (told["done"], told["statuses"], told["running"]) == (2, {"passed": 2}, 0)


def test_it_catches_up_with_what_was_added(tmp_path: Path) -> None:
    append(tmp_path, START, event("task_start", "a"))
    follower = Follower(tmp_path)
    follower.catch_up()
    told = follower.as_json()
    assert (told["planned"], told["done"], told["running"]) == (4, 0, 1)
    assert told["under_way"][0]["name"] == "a #1"
    append(tmp_path, event("task_done", "a", status="failed", failure_reason="wrong_answer", tokens=7, cost_usd=0.5))
    follower.catch_up()
    told = follower.as_json()
    assert (told["done"], told["running"], told["statuses"], told["tokens"], told["cost"]) == (
        1,
        0,
        {"failed": 1},
        7,
        0.5,
    )
    assert told["last"] == [{"name": "a #1", "status": "failed", "told": "failed wrong_answer"}]
    assert (told["finished"], told["score"]) == (False, None)
    append(tmp_path, {"event": "run_done", "time": 110.0, "score": 0.25})
    follower.catch_up()
    told = follower.as_json()
    assert (told["finished"], told["score"]) == (True, 0.25)


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    append(tmp_path, START)
    whole = json.dumps(event("task_done", "a", status="passed")) + "\n"
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(whole[:20])
    follower = Follower(tmp_path)
    follower.catch_up()
    assert follower.as_json()["done"] == 0
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(whole[20:])
    follower.catch_up()
    assert follower.as_json()["done"] == 1


def test_a_continued_run_is_under_way_again(tmp_path: Path) -> None:
    append(tmp_path, START, {"event": "run_done", "time": 2.0}, START | {"done_before": 3})
    follower = Follower(tmp_path)
    follower.catch_up()
    assert (follower.done, follower.as_json()["done"]) == (False, 3)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "null",
        "7",
        "{",
        '{"event":"unknown"}',
        '{"event":["task_done"]}',
        '{"event":"run_start"}',
        '{"event":"run_start","planned":"4","done_before":0}',
        '{"event":"run_start","planned":-4,"done_before":0}',
        '{"event":"task_done","task_id":"a","attempt":1}',
        '{"event":"task_done","status":["passed"]}',
        '{"event":"task_done","task_id":7,"attempt":"x","status":"passed","tokens":"7","cost_usd":-1}',
        '{"event":"task_start","task_id":{"a":1},"time":"now"}',
        '{"event":"producer_start","task_id":"\\u001b[31m<script>"}',
        "\x00" * 100,
        "x" * (3 * 2**20),
    ],
)
def test_lines_of_any_content_end_nothing(tmp_path: Path, line: str) -> None:
    append(tmp_path, START)
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(line + "\n")
    append(tmp_path, event("task_done", "last", status="passed"))
    follower = Follower(tmp_path)
    while follower.catch_up():
        pass
    told = follower.as_json()
    assert told["last"][0]["name"] == "last #1"
    assert "\x1b" not in json.dumps(told, ensure_ascii=False)


def test_without_a_journal_the_records_are_counted(tmp_path: Path) -> None:
    append(
        tmp_path, {"task_id": "a", "attempt": 1, "verification_status": "passed", "cost": 2.0}, name="candidates.jsonl"
    )
    follower = Follower(tmp_path)
    follower.catch_up()
    assert (follower.as_json()["statuses"], follower.as_json()["cost"]) == ({"passed": 1}, 2.0)


def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    append(tmp_path, START)
    tail = Tail(tmp_path, "events.jsonl")
    assert len(tail.read()[0]) == 1
    assert tail.read() == ([], False)
    (tmp_path / "new").write_text("a\nb\n")
    os.replace(tmp_path / "new", tmp_path / "events.jsonl")
    assert tail.read() == ([b"a", b"b"], False)


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "nothing"])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "secret").write_text("secret\n")
    place = tmp_path / "events.jsonl"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(tmp_path / "secret")
    elif kind == "directory":
        place.mkdir()
    assert Tail(tmp_path, "events.jsonl").read() == ([], False)


def test_a_long_journal_is_read_piece_by_piece(tmp_path: Path) -> None:
    append(tmp_path, START, *(event("task_done", f"t{n}", status="passed", message="x" * 500) for n in range(5000)))
    follower = Follower(tmp_path)
    pieces = 1
    while follower.catch_up():
        pieces += 1
    assert pieces > 2
    assert follower.as_json()["done"] == 5000


def test_attempts_that_took_no_time_have_no_rate(tmp_path: Path) -> None:
    soon = 5e-324  # the shortest time that is one: a rate over it is infinite, which JSON cannot say
    ended = event("task_done", "a", status="passed") | {"time": soon}
    append(tmp_path, START | {"time": 0}, ended, {"event": "run_done", "time": soon})
    follower = Follower(tmp_path)
    follower.catch_up()
    told = follower.as_json()
    assert (told["finished"], told["done"], told["rate"]) == (True, 1, None)
    _json.dumps(told)
