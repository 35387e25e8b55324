"""A part of a pack: chosen by name, tag and number, and every file of the run says so."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.workbench import question, securebench


def _bench(bench: Any) -> Any:
    rows = [question(n, metadata={"tags": ["even" if n % 2 == 0 else "odd"]}) for n in range(1, 7)]
    return bench(rows, "echo 42")


def test_filtered_run_is_visibly_filtered_everywhere(bench: Any) -> None:
    work = _bench(bench)
    done = work.run("--task", "t[1-5]", "--tag", "even", "--limit", "1", "--quiet")
    assert done.code == 0, done.err
    assert [record["task_id"] for record in work.records()] == ["t2"]
    filters = {"limit": 1, "tasks": ["t[1-5]"], "tags": ["even"]}
    assert done.json["filtered"] == "1 of 6 tasks (task t[1-5], tag even, limit 1)"
    assert done.json["filters"] == filters | {"pack_tasks": 6}
    plan = json.loads((work.output / "plan.json").read_text())
    assert plan["filters"] == filters
    assert [(task["id"], task["tags"]) for task in plan["tasks"]] == [("t2", ["even"])]
    assert securebench("verify", work.output).code == 0


def test_whole_run_does_not_say_it_was_filtered(bench: Any) -> None:
    done = _bench(bench).run("--quiet")
    assert (done.json["filtered"], done.json["filters"], done.json["total"]) == (None, {}, 6)
    assert done.json["interval"]["high"] == 1.0


def test_other_filters_are_another_run(bench: Any) -> None:
    work = _bench(bench)
    work.run("--tag", "even")
    again = work.run("--tag", "odd", "--resume")
    assert again.code == 2
    assert "filters.tags" in again.err


def test_misspelt_filters_are_explained_before_anything_is_written(bench: Any) -> None:
    work = _bench(bench)
    for arguments, words in ((["--task", "t-1"], "did you mean 't1'?"), (["--tag", "evem"], "did you mean 'even'?")):
        done = work.run(*arguments)
        assert done.code == 2
        assert words in done.err
    assert not work.output.exists()


def test_filtered_result_is_not_publishable(bench: Any) -> None:
    done = _bench(bench).run("--publishable", "--tag", "even")
    assert done.code == 2
    assert "drop --limit, --task and --tag" in done.err
