"""`securebench import` from the command line: packs that run, the same bytes every time, and mistakes that are told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import CLI, need_bubblewrap, securebench
from tests.harbor_tasks import harbor, lay
from tests.imports import jsonl

GSM = [{"question": f"What is {n} + 1?", "answer": f"Count.\n#### {n + 1}"} for n in range(30, 34)]
CODE = {
    "task_id": "Mine/0",
    "prompt": 'def twice(x):\n    """Twice x."""\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n    assert candidate(0) == 0\n",
}
CONSTANT = CODE | {"task_id": "Mine/1", "test": "def check(candidate):\n    assert candidate(0) == 0\n"}


def tree(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_same_source_same_bytes_and_the_pack_runs(tmp_path: Path) -> None:
    need_bubblewrap()
    source = jsonl(tmp_path / "gsm8k.jsonl", GSM)
    for name in ("one", "two"):
        done = securebench("import", "gsm8k", source, "-o", tmp_path / name, "--licence", "MIT", "--json")
        assert done.code == 0, done.err
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert done.json["written"] == 4
    assert done.json["source"]["licence"] == "MIT"
    samples = jsonl(
        tmp_path / "samples.jsonl",
        [{"task_id": f"gsm8k/{n + 1}", "completion": f"Sure.\nAnswer: {30 + n + 1}"} for n in range(4)],
    )
    graded = securebench("grade", tmp_path / "one", samples, "-o", tmp_path / "run", "--json", "--workers", "1")
    assert graded.code == 0, graded.err
    assert graded.json["passed"] == 4
    assert graded.json["assurance"] == {"pure": 4}


def test_rows_that_are_left_out_are_told_and_make_exit_1(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", [*GSM, "{", {"question": "no key"}])
    done = securebench("import", "gsm8k", source, "-o", tmp_path / "pack")
    assert done.code == 1
    assert "4 of 6 rows" in done.out
    assert "left out: x.jsonl:5: cannot be read: not JSON" in done.out
    assert "left out: x.jsonl:6: answer is missing" in done.out
    assert "--licence" in done.err
    assert "left_out: 2" in (tmp_path / "pack/manifest.yaml").read_text()


def test_rows_left_out_for_one_reason_are_one_line(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", [*GSM[:1], *[{"question": "no key"}] * 30, "{"])
    done = securebench("import", "gsm8k", source, "-o", tmp_path / "pack")
    assert done.code == 1
    told = [line for line in done.out.splitlines() if "left out" in line or "more" in line]
    assert told == [
        "left out: x.jsonl:2 and 29 more: answer is missing: the row has question",
        told[-1],
    ]
    assert told[-1].startswith("left out: x.jsonl:32: cannot be read: not JSON")


def test_commands_that_come_next_are_told(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", GSM[:1])
    for options, shown in (([], True), (["--quiet"], False), (["--json"], False)):
        done = securebench("import", "gsm8k", source, "-o", (target := tmp_path / f"pack{options}"), *options)
        assert done.code == 0
        assert (f" validate '{target}'\n" in done.err, f" grade '{target}' SAMPLES" in done.err) == (shown, shown)
        assert "Next" not in done.out
        assert ("1 of 1 rows\n" in done.out) is (options != ["--json"])


def test_image_that_is_not_here_is_told(tmp_path: Path) -> None:
    lay(tmp_path / "tasks/plain", harbor("base:1"))
    done = securebench("import", "harbor", tmp_path / "tasks", "-o", tmp_path / "pack")
    assert done.code == 0, done.err
    assert "note: needs the image base:1; " in done.out
    assert "image import docker-daemon:base:1\n" in done.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["gsm9k", "x.jsonl"], "did you mean 'gsm8k'?"),
        (["gsm8k", "nowhere.jsonl"], "no such file"),
        (["math", "x.jsonl", "--set", "answers=number"], "error: answers is all or numbers, not 'number'"),
        (["livecodebench", "x.jsonl", "--set", "seconds=abc"], "error: seconds is a number of seconds, not 'abc'"),
        (["simpleqa", "x.jsonl", "--prompt", "few-shot-cot"], "simpleqa has no prompt 'few-shot-cot'"),
        (["gsm8k", "x.jsonl", "--set", "seed=1"], "gsm8k has no setting 'seed'"),
        (["gsm8k", "x.jsonl", "--set", "seed"], "--set takes NAME=VALUE"),
        (["gsm8k", "x.jsonl", "--prompt", "cott"], "did you mean 'cot'?"),
        (["gsm8k", "x.jsonl", "--prompt", "none.md"], "none.md: cannot be read"),
        (["gsm8k", "x.jsonl", "--examples", "x.jsonl"], "shows no examples"),
        (["gsm8k", "x.jsonl", "--mutants", "3"], "add --check"),
        (["gsm8k", "x.jsonl", "--key", "me"], "add --sign"),
        (["gsm8k", "x.jsonl", "--sign", "--key", "nobody"], "there is no such key"),
        (["mmlu", "x.jsonl"], "none of 4 rows could be converted"),
    ],
)
def test_mistakes_are_told_and_nothing_is_left(tmp_path: Path, args: list[str], message: str) -> None:
    jsonl(tmp_path / "x.jsonl", GSM)
    done = securebench("import", *args, "-o", "pack", cwd=tmp_path, env={"XDG_CONFIG_HOME": str(tmp_path / "config")})
    assert done.code == 2, done.err
    assert message in done.err
    assert os.listdir(tmp_path) == ["x.jsonl"]


def test_directory_that_is_there_is_kept(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", GSM)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/mine.txt").write_text("keep")
    done = securebench("import", "gsm8k", source, "-o", tmp_path / "pack")
    assert done.code == 2
    assert "exists already" in done.err
    assert tree(tmp_path / "pack") == {"mine.txt": b"keep"}


def test_check_finds_and_excludes_and_signs(tmp_path: Path) -> None:
    need_bubblewrap()
    source = jsonl(tmp_path / "code.jsonl", [CODE, CONSTANT])
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert securebench("keys", "new", "me", env=env).code == 0
    done = securebench("import", "humaneval", source, "-o", tmp_path / "all", "--check", "--mutants", "2", "--quiet")
    assert done.code == 1, done.err
    assert "1 of 2 rows admitted" in done.out
    assert "not admitted: task Mine/1: passes without work: always returns None" not in done.out
    assert "passes without work: always returns 0" in done.out
    assert "--exclude-failing makes the pack without them" in done.out
    done = securebench(
        "import", "humaneval", source, "-o", tmp_path / "some", "--exclude-failing", "--mutants", "2", "--sign", "--json",
        env=env,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["admission"]["counts"]["excluded"] == 1
    assert (done.json["written"], done.json["excluded"]) == (1, 1)
    checked = securebench("validate", tmp_path / "some", "--no-run", "--json")
    assert checked.json["admission"]["key"].startswith("ed25519:")
    assert "forgotten" not in checked.json["admission"]["key"]
    with (tmp_path / "some/tasks.jsonl").open("a") as file:
        file.write(json.dumps(json.loads((tmp_path / "some/tasks.jsonl").read_text()) | {"id": "another"}) + "\n")
    stale = securebench("validate", tmp_path / "some", "--no-run")
    assert stale.code == 1
    assert "about another pack" in stale.err


@pytest.mark.parametrize("harness", ["null", "constant", "echo"])
def test_controls_score_nothing_on_imported_rows(tmp_path: Path, harness: str) -> None:
    need_bubblewrap()
    for name, rows in (("gsm8k", GSM), ("humaneval", [CODE])):
        source = jsonl(tmp_path / f"{name}.jsonl", rows)
        assert securebench("import", name, source, "-o", tmp_path / name).code == 0
        tester = {
            "schema_version": "0.3",
            "run": {"id": "controls", "output_dir": f"out-{name}"},
            "benchmark": {"manifest": f"{name}/manifest.yaml", "tasks": f"{name}/tasks.jsonl"},
            "harness": {"type": harness},
        }
        (tmp_path / "tester.yaml").write_text(json.dumps(tester))
        done = securebench("run", "--config", tmp_path / "tester.yaml", "--json", "--quiet")
        assert done.code == 0, done.err
        assert (done.json["passed"], done.json["score"]) == (0, 0.0)


def begun(tmp_path: Path) -> subprocess.Popen[str]:
    """An import that has begun to write."""
    source = tmp_path / "many.jsonl"
    with source.open("w") as file:
        for number in range(100_000):
            file.write(json.dumps({"question": f"{number}?", "answer": f"#### {number}"}) + "\n")
    argv = [*CLI, "import", "gsm8k", str(source), "-o", str(tmp_path / "pack")]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not any(entry.name.startswith(".pack.") for entry in tmp_path.iterdir()):
        time.sleep(0.005)
    return process


def test_interrupted_import_leaves_nothing(tmp_path: Path) -> None:
    with begun(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert process.stderr is not None
        assert process.stderr.read().strip() == "interrupted"
    assert os.listdir(tmp_path) == ["many.jsonl"]


def test_what_a_killed_import_left_is_gone_after_the_next(tmp_path: Path) -> None:
    with begun(tmp_path) as process:
        process.kill()
    assert len(os.listdir(tmp_path)) == 2
    source = jsonl(tmp_path / "x.jsonl", GSM)
    assert securebench("import", "gsm8k", source, "-o", tmp_path / "pack").code == 0
    assert sorted(os.listdir(tmp_path)) == ["many.jsonl", "pack", "x.jsonl"]


def test_formats_are_listed(tmp_path: Path) -> None:
    done = securebench("import", "--formats")
    assert done.code == 0
    for word in ("humaneval:", "mbpp:", "prompts: cot, default, few-shot, few-shot-cot", "--set seed=0"):
        assert word in done.out
    helped = securebench("import", "--help")
    for option in ("--check", "--exclude-failing", "--prompt", "--limit", "--licence", "--json", "--only", "--mapping"):
        assert option in helped.out


def test_templates_of_ones_own(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", GSM)
    (tmp_path / "mine.md").write_text("Be quick.\n\n$question\n")
    done = securebench("import", "gsm8k", source, "-o", tmp_path / "pack", "--prompt", tmp_path / "mine.md", "--json")
    assert done.json["source"]["prompt"].startswith("sha256:")
    rows: list[Any] = [json.loads(line) for line in (tmp_path / "pack/tasks.jsonl").read_text().splitlines()]
    assert rows[0]["input"]["question"] == "Be quick.\n\nWhat is 30 + 1?"
