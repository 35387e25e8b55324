"""`securebench convert harbor`: out of a pack and into one again, without a change in what passes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_harbor import BASE, _run, home  # noqa: F401 — a fixture
from tests.e2e.workbench import Finished, securebench
from tests.harbor_tasks import CHEATS
from tests.terminal_packs import DOUBLE, QUESTION, TOTAL, write_terminal_pack

TOTAL_NAME = "the-total-1-fb827948d8d8"


def tree(directory: Path) -> dict[str, tuple[bytes, bool]]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): (path.read_bytes(), bool(path.stat().st_mode & 0o111)) for path in files}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("convert")


@pytest.fixture(scope="module")
def converted(place: Path) -> Finished:
    write_terminal_pack(place / "pack", DOUBLE, TOTAL, QUESTION)
    return securebench("convert", "harbor", place / "pack", "-o", place / "tasks", "--image", BASE, "--json")


def test_task_directory_holds_what_harbor_takes(converted: Finished, place: Path) -> None:
    assert sorted(path.name for path in (place / "tasks").iterdir()) == ["double", TOTAL_NAME]
    files = tree(place / "tasks/double")
    assert files.keys() == {
        "task.toml",
        "instruction.md",
        "environment/Dockerfile",
        "environment/files/numbers/list.txt",
        "environment/files/bin/tool.sh",
        "tests/test.sh",
        "tests/test_double.py",
        "tests/data/list.txt",
        "tests/securebench-worker/securebench/__init__.py",
        "tests/securebench-worker/securebench/worker.py",
        "tests/securebench-worker/programs/call.py",
        "tests/securebench-worker/programs/http.py",
        "solution/solve.sh",
        "solution/workspace/double.sh",
    }
    executable = {path for path, (_, runs) in files.items() if runs}
    assert executable == {"environment/files/bin/tool.sh", "tests/test.sh", "solution/solve.sh"}
    dockerfile = files["environment/Dockerfile"][0].decode()
    assert dockerfile == f"FROM {BASE}\nWORKDIR /app\nCOPY files/ /app/\n"
    assert files["instruction.md"][0].decode() == DOUBLE["input"]["instructions"]
    assert tomllib.loads(files["task.toml"][0].decode()) == {
        "schema_version": "1.4",
        "metadata": {"difficulty": "easy", "tags": ["shell"], "weight": 2},
        "verifier": {"timeout_sec": 60.0},
        "agent": {"timeout_sec": 120.0},
        "environment": {
            "cpus": 2,
            "memory_mb": 513,
            "storage_mb": 64,
            "network_mode": "allowlist",
            "allowed_hosts": ["files.example.org"],
        },
    }


def test_no_test_and_no_solution_is_where_images_are_built(converted: Finished, place: Path) -> None:
    for name in ("double", TOTAL_NAME):
        built = b"".join(data for data, _ in tree(place / "tasks" / name / "environment").values())
        assert b"worker.run" not in built
        assert b"expected" not in built
        assert b"$((2 * $1))" not in built


def test_what_cannot_be_said_there_is_told_row_by_row(converted: Finished) -> None:
    assert (converted.code, converted.json["written"], converted.json["rows"]) == (1, 2, 3)
    assert converted.json["left_out"] == [
        {"task_id": "question", "line": 3, "reason": "is of family short_answer; Harbor's tasks are terminal tasks"}
    ]
    notes: dict[str, list[str]] = {}
    for note in converted.json["notes"]:
        notes.setdefault(note["task_id"], []).append(note["reason"])
    assert notes == {
        "double": [
            "read-only assets can be written there: 1 (bin/tool.sh)",
            "metadata.reviewed is left out: TOML cannot hold null",
            "cpus is rounded up to 2; not every Harbor takes parts of one",
            "memory is rounded up to 513 MiB",
            "its limit of 100 processes has no place in Harbor",
            "its checker needs python3 and pytest in the image",
            "its checker asks the worker to execute; there that happens in the checker's own container",
            "mutants stay behind: 1",
            "expected_state stays behind",
        ],
        "the total/1": [
            f"its directory is called {TOTAL_NAME}",
            "read-only assets can be written there: 1 (bin/tool.sh)",
            "test.sh among its tests is called securebench-checker.sh there",
        ],
    }
    assert "a reward there has no assurance" in converted.err


def test_imported_again_references_pass_and_nothing_else_does(home: Path, converted: Finished, place: Path) -> None:
    done = securebench("import", "harbor", place / "tasks", "-o", place / "again", "--json")
    told = ["metadata is kept without weight", "agents get what its tests have, too: numbers/list.txt"]
    assert (done.code, [note["reason"] for note in done.json["notes"]]) == (0, told), (done.out, done.err)
    valid = securebench("validate", place / "again", "--json")
    assert (valid.code, valid.json["trials"], valid.json["rows_without_reference"]) == (0, 4, []), valid.out
    honest = "echo 'echo $((2 * $1))' > double.sh; echo 42 > total.txt; cat bin/tool.sh"
    assert [record["passed"] for record in _run(place / "again", "honest", honest)] == [True, True]
    cheat = "; ".join((*(text for name, text in CHEATS.items() if name != "link"), "echo 'echo 4' > double.sh"))
    records = _run(place / "again", "cheat", cheat)
    assert [(record["passed"], record["assurance"]) for record in records] == [(False, "isolated")] * 2


def test_converted_again_it_is_the_same(converted: Finished, place: Path) -> None:
    made = securebench("import", "harbor", place / "tasks", "-o", place / "twice", "--json")
    assert made.code == 0, made.err
    again = securebench("convert", "harbor", place / "twice", "-o", place / "tasks-again", "--json")
    assert (again.code, again.json["left_out"]) == (0, []), again.out
    first, second = tree(place / "tasks"), tree(place / "tasks-again")
    was, now = (tomllib.loads(one.pop("double/task.toml")[0].decode()) for one in (first, second))
    assert was["metadata"].pop("weight") == 2  # the importer keeps the words that it knows
    assert was == now
    assert first == second


def test_image_that_holds_the_workspace_is_the_environment(tmp_path: Path) -> None:
    environment = {"image": BASE, "materialize_workdir_from_image": True}
    alone: dict[str, Any] = {**TOTAL, "id": "alone", "environment": environment}
    alone.pop("assets")
    write_terminal_pack(tmp_path / "pack", alone, {**TOTAL, "id": "more", "environment": environment})
    done = securebench("convert", "harbor", tmp_path / "pack", "-o", tmp_path / "tasks", "--json")
    assert done.code == 0, done.err
    toml = tomllib.loads((tmp_path / "tasks/alone/task.toml").read_text())
    assert (toml["environment"]["docker_image"], toml["environment"]["workdir"]) == (BASE, "/app")
    assert "RUN test -d /app\n" in (tmp_path / "tasks/more/environment/Dockerfile").read_text()
    assert any("use --build" in note["reason"] for note in done.json["notes"])
    again = securebench("import", "harbor", tmp_path / "tasks", "-o", tmp_path / "again", "--json")
    rows = [json.loads(line) for line in (tmp_path / "again/tasks.jsonl").read_text().splitlines()]
    assert rows[0]["environment"]["image"] == BASE
    assert all(row["environment"]["materialize_workdir_from_image"] for row in rows)
    assert "must be built" in again.json["notes"][0]["reason"]


def test_pack_without_a_row_for_harbor_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    write_terminal_pack(tmp_path / "pack", DOUBLE, QUESTION)
    done = securebench("convert", "harbor", tmp_path / "pack", "-o", tmp_path / "tasks")
    assert (done.code, (tmp_path / "tasks").exists()) == (2, False)
    assert "task double (line 1): names no image; say one with --image" in done.err
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/mine").write_text("")
    there = securebench("convert", "harbor", tmp_path / "pack", "-o", tmp_path / "tasks", "--image", BASE)
    assert (there.code, "exists already" in there.err) == (2, True)
    strange = securebench("convert", "harbor", tmp_path / "pack", "-o", tmp_path / "new", "--image", "a\nRUN rm -rf /")
    assert (strange.code, strange.err.splitlines()[0]) == (
        2,
        "--image: must not contain control or invisible characters, nor begin or end with a space",
    )


def test_reference_that_repeats_assets_is_imported_again(tmp_path: Path) -> None:
    hidden, assets = tmp_path / "pack/hidden/double/solution", tmp_path / "pack/assets/given"
    for folder in (hidden / "numbers", hidden / "new/deep", assets / "empty", assets / "more"):
        folder.mkdir(parents=True)
    (hidden / "numbers/list.txt").write_text("4\n38\n")  # as the asset
    (hidden / "new/deep/x.txt").write_text("x\n")
    (hidden / "numbers/other.txt").write_text("a line of its own, not given to anybody\n")
    (assets / "more/x.txt").write_text("something else that is longer than a line of a few characters\n")
    row: dict[str, Any] = json.loads(json.dumps(DOUBLE))
    row["assets"].append({"path": "given"})
    write_terminal_pack(tmp_path / "pack", row, image=BASE)
    done = securebench("convert", "harbor", tmp_path / "pack", "-o", tmp_path / "tasks", "--json")
    assert done.code == 0, done.out
    solution = sorted(str(path) for path in tree(tmp_path / "tasks/double/solution"))
    expected = ["solve.sh", *(f"workspace/{name}" for name in ("double.sh", "new/deep/x.txt", "numbers/other.txt"))]
    assert solution == expected
    told = {note["reason"] for note in done.json["notes"]}
    assert "its solution is without files that its assets have already: 1 (numbers/list.txt)" in told
    assert "empty directories of its assets are not imported again: 1 (given/empty)" in told
    again = securebench("import", "harbor", tmp_path / "tasks", "-o", tmp_path / "again", "--json")
    assert (again.code, again.json["written"], again.json["left_out"]) == (0, 1, 0), again.out


def test_checker_that_is_called_by_another_is_not_replaced_by_harbors(tmp_path: Path) -> None:
    """Else a checker that calls the `test.sh` beside it would call itself without end."""
    calls: dict[str, Any] = json.loads(json.dumps(TOTAL | {"id": "calls"}))
    (tmp_path / "pack/hidden/total").mkdir(parents=True)
    (tmp_path / "pack/hidden/total/run.sh").write_text('exec bash "$(dirname "$0")/test.sh"\n')
    calls["eval"]["checker"] = {"source": "script", "path": "total/run.sh", "mount": "run.sh"}
    calls["eval"]["test_files"].append({"path": "total/test.sh", "mount": "test.sh"})
    write_terminal_pack(tmp_path / "pack", TOTAL, calls, image=BASE)
    done = securebench("convert", "harbor", tmp_path / "pack", "-o", tmp_path / "tasks", "--json")
    assert (done.code, [path.name for path in (tmp_path / "tasks").iterdir()]) == (1, [TOTAL_NAME])
    reason = "has a file where one of Harbor's has to be: tests/test.sh"
    assert done.json["left_out"] == [{"task_id": "calls", "line": 2, "reason": reason}]


def test_row_with_a_file_where_harbors_has_to_be_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "pack/hidden/mine").mkdir(parents=True)
    (tmp_path / "pack/hidden/mine/x").write_text("")
    clash: dict[str, Any] = json.loads(json.dumps(DOUBLE | {"id": "clash"}))
    clash["eval"]["test_files"].append({"path": "mine", "mount": "securebench-worker"})
    write_terminal_pack(tmp_path / "pack", DOUBLE, clash, image=BASE)
    done = securebench("convert", "harbor", tmp_path / "pack", "-o", tmp_path / "tasks", "--json")
    assert (done.code, [path.name for path in (tmp_path / "tasks").iterdir()]) == (1, ["double"])
    assert done.json["left_out"][0]["reason"].startswith(
        "has a file where one of Harbor's has to be: tests/securebench-worker/"
    )
