"""`securebench report` and `securebench show` as commands, on real runs and on hostile ones."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.workbench import securebench
from tests.gallery import chat_run, repository_run
from tests.hostile_run import TEXTS, hostile_run
from tests.injection import controls_in

from securebench.testing.synthetic_run import SyntheticRun, write_run

ORDER = re.compile(r"^\s*::|##\[|##\w+\[", re.MULTILINE)
"""What CI services obey."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    return {
        "asked": chat_run(place),
        "worked": repository_run(place),
        "many": write_run(place / "many", SyntheticRun(run_id="many", tasks=60)),
        "hostile": hostile_run(place / "hostile"),
    }


def test_a_page_is_written_and_named(runs: dict[str, Path], tmp_path: Path) -> None:
    done = securebench("report", runs["asked"], "-o", tmp_path / "report.html")
    assert done.code == 0, done.err
    assert re.fullmatch(rf"{tmp_path}/report\.html: asked 50\.0 %, [1-9]\d* kB\n", done.out)
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_directory_of_runs_makes_one_page(runs: dict[str, Path], tmp_path: Path) -> None:
    done = securebench("report", runs["asked"], runs["many"], "-o", tmp_path / "report.html", "--json")
    assert done.code == 0, done.err
    assert [run["label"] for run in done.json["runs"]] == ["asked", "many"]
    assert "2 runs" in (tmp_path / "report.html").read_text()


def test_json_is_what_it_is_made_of(runs: dict[str, Path]) -> None:
    (run,) = securebench("report", runs["asked"], "--json").json["runs"]
    assert run["score"] == 0.5
    assert run["verification"]["ok"] is True
    assert [task["id"] for task in run["tasks"]] == ["six", "eight", "nine", "code-1", "code-2"]
    assert run["failure_reasons"] == {"wrong_answer": 5}
    assert {one["by"] for one in run["groupings"]} >= {"family", "difficulty", "tag"}


@pytest.mark.parametrize("form", ["markdown", "github"])
def test_markdown_has_the_numbers(runs: dict[str, Path], tmp_path: Path, form: str) -> None:
    done = securebench("report", runs["asked"], "--format", form)
    assert done.code == 0, done.err
    assert "**50.0 %**" in done.out
    assert "<code>code-2</code>" in done.out
    assert "– Consistent, but the seal names nobody" in done.out
    done = securebench("report", runs["asked"], "-o", tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text().startswith("# SecureBench report")


def test_a_run_that_does_not_verify_is_reported_as_such(runs: dict[str, Path], tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SyntheticRun(tasks=8))
    data = (run / "candidates.jsonl").read_bytes()
    (run / "candidates.jsonl").write_bytes(data.replace(b'"passed":false', b'"passed":true', 1))
    done = securebench("report", run, "--format", "github")
    assert done.code == 0
    assert "does not verify" in done.err
    assert "✗ Not verified" in done.out


def test_a_run_that_did_not_end_is_reported_as_such(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SyntheticRun(tasks=8))
    for name in ("seal.json", "summary.json"):
        (run / name).unlink()
    lines = (run / "candidates.jsonl").read_bytes().splitlines(keepends=True)
    (run / "candidates.jsonl").write_bytes(b"".join(lines[:9]))
    done = securebench("report", run, "--format", "github")
    assert "– Stopped before its end: 9 of 24 recorded" in done.out
    assert "has not ended and is not sealed" in done.err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nowhere"], "no such directory"),
        ([], "Missing argument"),
        (["{run}", "-o", "nowhere/report.html"], "cannot be written"),
        (["{run}", "--format", "pdf"], "Invalid value"),
        (["{run}", "-o", "report.pdf"], "print the page"),
        (["{run}", "-o", "report.docx"], "say which format: name it .html"),
        (["{run}", "-o", "report"], "or give --format"),
        (["{run}", "-o", "{run}/plan.json"], "is a file of a run"),
    ],
)
def test_what_was_asked_wrongly_says_how(runs: dict[str, Path], arguments: list[str], words: str) -> None:
    done = securebench("report", *(one.format(run=runs["asked"]) for one in arguments))
    assert done.code == 2
    assert words in done.err


def test_show_lists_a_run(runs: dict[str, Path]) -> None:
    done = securebench("show", runs["asked"])
    assert done.code == 0, done.err
    for words in (
        "asked: gallery 1",
        "50.0 %",
        "✓ 5 passed",
        "✗ 5 failed",
        "– Consistent",
        "short_answer",
        "wrong_answer",
    ):
        assert words in done.out, words
    failed = securebench("show", runs["asked"], "--failed").out
    assert "code-2" in failed
    assert "code-1" not in failed


def test_show_tells_of_a_task(runs: dict[str, Path]) -> None:
    done = securebench("show", runs["asked"], "code-2", "--attempt", "1")
    assert done.code == 0, done.err
    for words in ("attempt 1: failed wrong_answer", "return x * 3", "3 failed: wrong", "● Agent", "Write double(x)"):
        assert words in done.out, words
    assert "attempt 2" not in done.out
    both = securebench("show", runs["asked"], "code-2").out
    assert both.count("Write double(x), which returns twice x. (code-2)") == 1 + both.count("● Task")
    only = securebench("show", runs["asked"], "code-2", "--failed").out
    assert "attempt 1: failed" in only
    assert "attempt 2" not in only
    assert "+++ b/wallet.py" in securebench("show", runs["worked"], "wallet").out


def test_show_as_json(runs: dict[str, Path]) -> None:
    value = securebench("show", runs["asked"], "code-2", "--json").json
    assert value["id"] == "code-2"
    assert [one["status"] for one in value["attempts"]] == ["failed", "passed"]
    for one in value["attempts"]:
        assert one["seconds"] == one["produce_seconds"] + one["verify_seconds"]
    detail = value["attempts"][0]["detail"]
    assert detail["candidate"]["content"].startswith("def double(x):")
    assert detail["transcript"]["steps"][1]["source"] == "agent"
    tasks = securebench("show", runs["asked"], "--json", "--failed").json["tasks"]
    assert [task["id"] for task in tasks] == ["eight", "nine", "code-2"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nothing"], "there is no task 'nothing'"),
        (["cod-1"], "did you mean code-1"),
        (["code"], "2 tasks have 'code' in their names"),
        (["code-1", "--attempt", "9"], "there is no attempt 9"),
        (["--attempt", "1"], "--attempt needs a TASK"),
    ],
)
def test_show_that_was_asked_wrongly_says_how(runs: dict[str, Path], arguments: list[str], words: str) -> None:
    done = securebench("show", runs["asked"], *arguments)
    assert done.code == 2
    assert words in done.err


def test_show_of_several_runs_asks_for_one(runs: dict[str, Path]) -> None:
    done = securebench("show", runs["asked"].parent)
    assert done.code == 2
    assert "choose one" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "{run}", "--all"],
        ["show", "{run}", "--json"],
        ["report", "{run}", "--format", "markdown"],
        ["report", "{run}", "--format", "github"],
        ["report", "{run}"],
        ["report", "{run}", "--json"],
        *(
            ["show", "{run}", text, "--all"]
            for text in TEXTS.values()
            if "\x00" not in text and not text.startswith("-")
        ),
    ],
    ids=lambda arguments: " ".join(arguments)[:40].encode("ascii", "replace").decode(),
)
def test_no_output_holds_anything_that_steers(runs: dict[str, Path], arguments: list[str]) -> None:
    done = securebench(*(runs["hostile"] if one == "{run}" else one for one in arguments))
    assert done.code in {0, 2}, done.err
    assert controls_in(done.out) == []
    assert controls_in(done.err) == []
    if "--json" not in arguments and arguments != ["report", "{run}"]:  # data, and a page, are for files
        assert not ORDER.search(done.out + done.err)


def test_on_a_terminal_only_our_own_colours_are_sent(runs: dict[str, Path]) -> None:
    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "securebench", "show", str(runs["hostile"]), TEXTS["ansi erase"]]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(argv, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        seen = b""
        try:
            while data := os.read(leader, 65536):
                seen += data
        except OSError:
            pass
        process.wait(120)
    os.close(leader)
    text = seen.decode()
    assert "all passed" in text, "the candidate's text is there"
    rest = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")
    assert controls_in(rest) == []
    assert "\x1b[31m" in text


def test_a_page_on_a_terminal_asks_for_a_file(runs: dict[str, Path]) -> None:
    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "securebench", "report", str(runs["asked"])]
    with subprocess.Popen(argv, stdout=follower, stderr=subprocess.PIPE, text=True) as process:
        os.close(follower)
        _, err = process.communicate(timeout=300)
    os.close(leader)
    assert process.returncode == 2
    assert "-o report.html" in err


def test_any_name_is_written_to_where_the_format_is_said(runs: dict[str, Path], tmp_path: Path) -> None:
    assert securebench("report", runs["asked"], "-o", tmp_path / "report.txt", "--format", "markdown").code == 0
    assert (tmp_path / "report.txt").read_text().startswith("# SecureBench report")


def test_json_of_show_and_report_say_the_same(runs: dict[str, Path]) -> None:
    shown = securebench("show", runs["many"], "--json").json
    assert [shown] == json.loads(securebench("report", runs["many"], "--json").out)["runs"]
