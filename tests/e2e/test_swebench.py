"""SWE-bench rows about self-made repositories, imported and graded through the command line, in real sandboxes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.swebench_rows import PROJECTS, make_bundles, patch_of, write_rows

from securebench.workspaces._git.bundle import open_bundle


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_bubblewrap()
    directory = tmp_path_factory.mktemp("swebench")
    write_rows(directory / "rows.jsonl", make_bundles(directory, *PROJECTS))
    done = securebench("import", "swebench", directory / "rows.jsonl", "--repos", directory / "repos", "-o", directory / "pack", "--json")  # fmt: skip
    assert (done.code, done.json["written"]) == (0, len(PROJECTS)), (done.out, done.err)
    (note,) = done.json["notes"]
    assert (note["line"], "left out: 1 (a test id names no test)" in note["reason"]) == (3, True)
    return directory


def _rows(place: Path) -> dict[str, Any]:
    lines = (place / "rows.jsonl").read_text().splitlines()
    return {row["instance_id"]: row for row in map(json.loads, lines)}


def _grade(place: Path, name: str, predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    samples = write_rows(place / f"{name}.jsonl", predictions)
    done = securebench("grade", place / "pack", samples, "-o", place / name, "--ignore-missing", "--json")
    assert done.code == 0, (done.out, done.err)
    records = (place / name / "candidates.jsonl").read_text().splitlines()
    return sorted(map(json.loads, records), key=lambda record: (record["task_id"], record["attempt"]))


def _prediction(row: dict[str, Any], patch: str) -> dict[str, Any]:
    return {"instance_id": row["instance_id"], "model_name_or_path": "test", "model_patch": patch}


def test_known_patches_pass_and_empty_ones_do_not(place: Path) -> None:
    rows = _rows(place).values()
    predictions = [_prediction(row, "") for row in rows] + [_prediction(row, row["patch"]) for row in rows]
    records = _grade(place, "known", predictions)
    assert [record["passed"] for record in records] == [False, True] * len(PROJECTS), [
        (record["task_id"], record["failure_message"]) for record in records
    ]
    assert {record["assurance"] for record in records if record["passed"]} == {"shared_process"}


def test_cheats_fail(place: Path) -> None:
    project = PROJECTS[0]
    row = _rows(place)[project.instance]
    clone = place / "clones" / project.instance
    patches = {name: patch_of(clone, row["base_commit"], files) for name, files in project.cheats.items()}
    records = _grade(place, "cheats", [_prediction(row, patch) for patch in patches.values()])
    assert [record["passed"] for record in records] == [False] * len(patches), list(patches)
    assert {record["failure_reason"] for record in records} == {"tests_failed"}


def test_the_cheats_do_fool_a_runner_that_takes_the_candidates_files(place: Path) -> None:
    project = PROJECTS[0]
    for name in ("conftest", "conftest beside the tests"):
        tree = place / name
        for path, text in {**project.files, **project.tests, **project.cheats[name]}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "tests"]
        done = subprocess.run(argv, cwd=tree, env=os.environ | {"PYTHONPATH": "."}, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout


def test_pack_holds_the_base_commit_and_nothing_later(place: Path) -> None:
    for row in _rows(place).values():
        bundle = open_bundle(place / "pack/assets/repositories" / f"{row['instance_id']}.bundle")
        held = set(bundle.objects(row["base_commit"]))
        assert len(bundle._pack._ids) == len(held)
        assert [kind for kind, _ in held].count(b"commit") == 1


def test_validate_finds_every_row_sound(place: Path) -> None:
    done = securebench("validate", place / "pack", "--json")
    assert (done.code, done.json["trials"]) == (0, 2 * len(PROJECTS)), done.out
