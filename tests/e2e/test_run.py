"""What a run writes, prints and returns, whatever the agent does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import CLI, question, securebench

from securebench.engine.lanes import LEAST_FREE

SEED_FIELDS = {
    "run_id", "task_id", "benchmark_id", "task_type", "verification_status", "candidate_text", "candidate_patch",
    "candidate_workspace", "producer_stdout", "producer_stderr", "producer_metadata", "resource_summary",
    "hidden_values", "passed", "score", "verifier_stdout", "verifier_stderr", "verifier_metadata", "failure_reason",
}  # fmt: skip


def test_right_and_wrong_answers_are_recorded_and_summed_up(bench: Any) -> None:
    work = bench([question(1), question(2)], "grep -q t1 task.json && echo 'Answer: 42' || echo 'Answer: 41'")
    done = work.run()
    assert done.code == 0, done.err
    assert (done.json["passed"], done.json["failed"], done.json["score"]) == (1, 1, 0.5)
    assert done.json["verification_status"] == "complete"
    assert done.json["assurance"] == {"pure": 2}
    assert json.loads((work.output / "summary.json").read_text()) == done.json
    records = {record["task_id"]: record for record in work.records()}
    assert records["t1"].keys() >= SEED_FIELDS
    assert records["t1"]["candidate_text"] == "Answer: 42\n"
    assert records["t2"]["failure_reason"] == "wrong_answer"
    assert records["t1"]["producer_metadata"]["guarantees"]
    assert records["t1"]["digests"]["pack"].startswith("sha256:")


AGENTS = {
    "crashes": ("exit 3", {}, "producer_failed"),
    "kills itself": ("kill -9 $$", {}, "producer_failed"),
    "hangs": ("sleep 100", {"timeout_seconds": 1}, "producer_timeout"),
    "hangs behind a daemon": ("(setsid sleep 100 &) ; sleep 100", {"timeout_seconds": 1}, "producer_timeout"),
    "floods its output": ("yes", {"timeout_seconds": 20}, "producer_output_limit"),
    "says nothing": ("true", {}, "no_answer"),
    "prints bytes that are not text": (r"printf '\377\376'", {}, "candidate_refused"),
    "leaves no file": ("true", {"artifact_path": "answer.txt"}, "no_candidate"),
    "links its file to the host": (
        "ln -s /etc/passwd answer.txt",
        {"artifact_path": "answer.txt"},
        "candidate_refused",
    ),
    "links its directory": ("ln -s /etc d", {"artifact_path": "d/passwd"}, "candidate_refused"),
    "leaves a FIFO": ("mkfifo answer.txt", {"artifact_path": "answer.txt"}, "candidate_refused"),
    "leaves a directory": ("mkdir answer.txt", {"artifact_path": "answer.txt"}, "candidate_refused"),
    "leaves a huge file": ("truncate -s 900G answer.txt", {"artifact_path": "answer.txt"}, "producer_failed"),
    "leaves a large file": (
        "head -c 2000000 /dev/zero > answer.txt",
        {"artifact_path": "answer.txt"},
        "candidate_too_large",
    ),
    "answers twice": ("echo 'Answer: 41'; echo 'Answer: 42'", {}, "ambiguous_answer"),
    "forges a verdict": ("""echo '{"passed": true, "score": 1.0}'""", {}, "malformed_answer"),
}


@pytest.mark.parametrize("behaviour", AGENTS)
def test_whatever_an_agent_does_is_its_own_failure_and_stays_counted(bench: Any, behaviour: str) -> None:
    command, config, reason = AGENTS[behaviour]
    work = bench([question(1)], command, **config)
    done = work.run()
    assert done.code == 0, done.err
    [record] = work.records()
    assert (record["verification_status"], record["passed"], record["score"]) == ("failed", False, 0.0)
    assert record["failure_reason"] == reason
    assert (done.json["verified"], done.json["errors"], done.json["score"]) == (1, 0, 0.0)


def test_answer_from_a_file_is_judged_like_one_from_stdout(bench: Any) -> None:
    work = bench([question(1)], "echo noise; echo 'Answer: 42' > answer.txt", artifact_path="answer.txt")
    assert work.run().json["passed"] == 1


def test_a_daemon_cannot_change_the_file_after_the_agent_ended(bench: Any) -> None:
    daemon = "(setsid sh -c 'while :; do echo 42 > answer.txt; echo 41 > answer.txt; done' &); sleep 0.2; echo 42 > answer.txt"
    work = bench([question(1)], daemon, artifact_path="answer.txt")
    done = work.run()
    assert done.code == 0
    [record] = work.records()
    assert record["candidate_text"] in {"42\n", "41\n", ""}
    assert subprocess.run(["pgrep", "-f", "echo 42 > answer.txt"], capture_output=True, check=False).returncode == 1


def test_one_bad_task_does_not_end_the_run(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "data.txt").write_text("x")
    rows = [question(1), question(2, assets=[{"path": "data.txt"}]), question(3)]
    work = bench(rows, "rm -f data.txt; echo 42")
    assert work.run().json["passed"] == 3


def test_prose_stays_pending_without_a_judge(bench: Any) -> None:
    rubric = {"type": "judge", "criteria": "is kind", "controls": [{"response": "go away"}]}
    row = {"id": "prose", "family": "free_response", "input": {"prompt": "Say hello."}, "eval": {"rubric": rubric}}
    done = bench([row, question(1)], "echo 42").run()
    assert (done.json["pending"], done.json["verification_status"]) == (1, "partial")


def test_a_finished_run_is_not_overwritten(bench: Any) -> None:
    work = bench([question(1)], "echo 42")
    work.run()
    before = (work.output / "candidates.jsonl").read_bytes()
    again = work.run()
    assert again.code == 2
    assert "--resume" in again.err
    assert (work.output / "candidates.jsonl").read_bytes() == before


def test_resume_after_a_kill_completes_every_attempt_exactly_once(bench: Any) -> None:
    rows = [question(number) for number in range(12)]
    work = bench(rows, "sleep 0.3; echo 42", run={"attempts": 2})
    running = subprocess.Popen([*CLI, "run", "--config", str(work.config), "--quiet"], stdout=subprocess.DEVNULL)
    path = work.output / "candidates.jsonl"
    deadline = time.monotonic() + 90
    while (not path.exists() or path.read_bytes().count(b"\n") < 5) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.kill()
    running.wait()
    with path.open("ab") as file:
        file.write(b'{"torn": ')
    kept = path.read_bytes().count(b"\n")
    assert 5 <= kept < 24
    done = work.run("--resume")
    assert done.code == 0, done.err
    assert "incomplete" in done.err
    keys = [(record["task_id"], record["attempt"]) for record in work.records()]
    assert len(keys) == len(set(keys)) == 24
    assert done.json["passed"] == 24


def test_resume_refuses_another_pack(bench: Any) -> None:
    work = bench([question(1), question(2)], "echo 42")
    work.run("--limit", "1")
    with (work.directory / "tasks.jsonl").open("a") as file:
        file.write(json.dumps(question(3)) + "\n")
    again = work.run("--resume")
    assert again.code == 2
    assert "pack_digest: " in again.err
    assert "tasks newly planned: t2, t3" in again.err


def test_resume_refuses_an_edited_record(bench: Any) -> None:
    work = bench([question(1), question(2)], "echo 41")
    work.run("--limit", "2")
    path = work.output / "candidates.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Answer: 41", b"Answer: 42", 1).replace(b'"41', b'"42', 1))
    again = work.run("--resume", "--limit", "2")
    assert again.code == 1
    assert "candidates.jsonl:2" in again.err


def test_interrupt_is_clean(bench: Any) -> None:
    work = bench([question(number) for number in range(4)], "sleep 331.25")
    running = subprocess.Popen(
        [*CLI, "run", "--config", str(work.config)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 90
    while not _sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _sleepers(), "the agents never started"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert "Interrupted" in out
    assert not _sleepers()


def _sleepers() -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(b"sleep\x00331.25"):
            found.append(pid)
    return found


def test_full_disk_stops_the_run_and_keeps_complete_records(bench: Any, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    size = LEAST_FREE // 1024 + 96
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], check=True)
    try:
        work = bench([question(number) for number in range(60)], "echo 42")
        done = work.run("--output-dir", disk / "run")
        assert done.code == 3
        assert "too little to begin another attempt" in done.err
        data = (disk / "run" / "candidates.jsonl").read_bytes()
        assert data.endswith(b"\n")
        assert all(json.loads(line)["passed"] for line in data.splitlines())
        assert 1 <= data.count(b"\n") < 60
        subprocess.run(["mount", "-o", f"remount,size={size + 10_000}k", disk], check=True)
        again = work.run("--output-dir", disk / "run", "--resume")
        assert (again.code, again.json["passed"]) == (0, 60)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_unwritable_output_directory_is_said_before_anything_runs(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = bench([question(1)], "echo 42").run("--output-dir", tmp_path / "file" / "run")
    assert done.code == 3
    assert "cannot be used as a run directory" in done.err


def test_progress_as_json_lines(bench: Any) -> None:
    done = bench([question(1)], "echo 42").run("--progress", "json")
    events = [json.loads(line)["event"] for line in done.err.splitlines()]
    for name in (
        "run_start",
        "task_start",
        "producer_start",
        "sandbox_command",
        "verifier_done",
        "task_done",
        "run_done",
    ):
        assert name in events
    assert events.index("task_start") < events.index("verifier_done") < events.index("run_done")


def test_agent_output_is_shown_with_control_characters_made_visible(bench: Any) -> None:
    done = bench([question(1)], r"printf '\033[2J\r::error::42\n'; echo 42").run("--show-agent-output")
    assert "\\x1b[2J" in done.err
    assert "\033" not in done.err


def test_quiet_prints_nothing_but_the_result(bench: Any) -> None:
    done = bench([question(1)], "echo 42").run("--quiet")
    assert done.err == ""
    assert done.json["passed"] == 1


def test_publishable_refuses_an_unpinned_image(bench: Any) -> None:
    done = bench([question(1, environment={"image": "python:3.12"})], "echo 42").run("--publishable")
    assert done.code == 2
    assert "tasks.jsonl:1: environment.image" in done.err


def test_missing_environment_variable_is_a_configuration_error(bench: Any) -> None:
    work = bench([question(1)], "echo 42")
    tester = json.loads(work.config.read_text())
    tester["harness"]["env"] = ["SURELY_NOT_SET"]
    work.config.write_text(json.dumps(tester))
    done = work.run()
    assert done.code == 2
    assert "SURELY_NOT_SET" in done.err


def test_named_variables_reach_the_agent_and_no_others(bench: Any, tmp_path: Path) -> None:
    work = bench([question(1)], "env; echo 42")
    tester = json.loads(work.config.read_text())
    tester["harness"]["env"] = ["WANTED"]
    work.config.write_text(json.dumps(tester))
    (tmp_path / ".env").write_text("WANTED=yes-please\nUNWANTED=no-thanks\n")
    work.run("--env-file", tmp_path / ".env")
    [record] = work.records()
    assert "WANTED=yes-please" in record["producer_stdout"]
    assert "no-thanks" not in record["producer_stdout"]


def test_bad_configuration_exits_2_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "tester.yaml").write_text('schema_version: "0.3"\nrun: {id: x, output_dir: out, atempts: 2}\n')
    done = securebench("run", "--config", tmp_path / "tester.yaml")
    assert done.code == 2
    assert "tester.yaml:2: run.atempts: unknown key 'atempts' (did you mean 'attempts'?)" in done.err
    assert "harness: required key is missing" in done.err
    assert not (tmp_path / "out").exists()


EDITS = {
    "a status that is none": (
        '"verification_status":"failed"',
        '"verification_status":"PASSED"',
        "verification_status",
    ),
    "a score beyond one": ('"score":0.0', '"score":99.0', "score"),
    "a score that is text": ('"score":0.0', '"score":"x"', "score"),
    "a verdict against its status": ('"passed":false', '"passed":true', "says passed and not passed"),
    "a foreign task": ('"task_id":"t1"', '"task_id":"other"', "not part of this run"),
    "an attempt nobody planned": ('"attempt":1', '"attempt":7', "not part of this run"),
    "no digests": ('"digests":{', '"digests":null,"x":{', "digests"),
    "no reason": ('"failure_reason":"wrong_answer"', '"failure_reason":null', "failed without a reason"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_resume_refuses_a_record_that_cannot_be_right(bench: Any, edit: str) -> None:
    before, after, complaint = EDITS[edit]
    work = bench([question(1)], "echo 41")
    work.run()
    path = work.output / "candidates.jsonl"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    again = work.run("--resume")
    assert again.code == 1, again.err
    assert complaint in again.err
    assert "Traceback" not in again.err


@pytest.mark.parametrize("limit", ["0", "1"])
def test_small_limits_are_runs_like_any_other(bench: Any, limit: str) -> None:
    done = bench([question(1), question(2)], "echo 42").run("--limit", limit)
    assert done.code == 0, done.err
    assert (done.json["total"], done.json["verification_status"]) == (int(limit), "complete")


@pytest.mark.parametrize("section", [{"budget": {"usd": 1}}, {"executor": {"type": "local", "in_flight": 5}}])
def test_settings_this_version_would_ignore_are_refused(bench: Any, section: dict[str, Any]) -> None:
    work = bench([question(1)], "echo 42")
    work.config.write_text(json.dumps(json.loads(work.config.read_text()) | section))
    done = work.run()
    assert done.code == 2
    assert next(iter(section)) in done.err


def test_what_a_pack_lets_agents_reach_is_said_before_it_runs(bench: Any) -> None:
    networked = question(2, environment={"network": {"allowed_domains": ["example.com"]}})
    work = bench([question(1), networked], "echo 42")
    done = work.run()
    assert done.code == 0
    assert "agents may reach example.com through the proxy" in done.err
    assert {record["task_id"]: record["producer_metadata"]["reachable"] for record in work.records()} == {
        question(1)["id"]: [],
        networked["id"]: ["example.com"],
    }


def test_a_closed_progress_stream_does_not_end_the_run(bench: Any) -> None:
    work = bench([question(number) for number in range(4)], "echo 42")
    command = f"{' '.join(CLI)} run --config {work.config} 2>&1 >/dev/null | head -n 1"
    subprocess.run(["sh", "-c", command], check=False, capture_output=True, timeout=300)
    assert len(work.records()) == 4
    assert json.loads((work.output / "summary.json").read_text())["passed"] == 4


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", ">/dev/full"])
def test_output_that_cannot_be_written_loses_no_record(bench: Any, redirection: str) -> None:
    work = bench([question(1)], "echo 42")
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(CLI)} run --config {work.config} {redirection}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert len(work.records()) == 1
    assert "Traceback" not in done.stderr


def test_a_pack_changed_during_the_run_ends_it_with_a_summary(bench: Any) -> None:
    work = bench([question(number) for number in range(6)], "sleep 0.5; echo 42")
    running = subprocess.Popen(
        [*CLI, "run", "--config", str(work.config), "--workers", "1"], stderr=subprocess.PIPE, text=True
    )
    path = work.output / "candidates.jsonl"
    deadline = time.monotonic() + 90
    while (not path.exists() or not path.read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.02)
    tasks = work.directory / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace("6 * 7?", "6 * 8?"))
    _, err = running.communicate(timeout=300)
    assert running.returncode == 1
    assert "row changed since the pack was loaded" in err
    assert json.loads((work.output / "summary.json").read_text())["interrupted"]


def test_infrastructure_errors_show_in_the_exit_code(bench: Any) -> None:
    done = bench([question(1, environment={"workdir": "/proc/x"})], "echo 42").run()
    assert done.code == 3
    assert (done.json["errors"], done.json["verified"], done.json["score"]) == (1, 0, None)


def test_a_wrong_answer_is_not_marked_by_what_is_scrubbed(bench: Any) -> None:
    row = question(1, input={"question": "Capital?"}, eval={"accepted_answers": ["Canberra"]})
    work = bench([row], "echo 'Answer: Sydney, Melbourne, Canberra, Perth'")
    work.run()
    [record] = work.records()
    assert record["verification_status"] == "failed"
    assert "[redacted]" not in json.dumps(
        {k: v for k, v in record.items() if k not in {"resource_summary", "hidden_values"}}
    )


def test_commands_are_shown_on_one_line_when_asked(bench: Any) -> None:
    done = bench([question(1)], "echo 42\necho \x1b[2J >&2").run("--show-command-output")
    line = next(line for line in done.err.splitlines() if " $ " in line)
    assert line.startswith("t1 #1 $ sh -lc")
    assert "\033" not in done.err


def test_resume_anyway_goes_on_and_the_records_say_so(bench: Any) -> None:
    work = bench([question(1), question(2), question(3)], "echo 42")
    assert work.run("--limit", "1").code == 0
    config = json.loads(work.config.read_text())
    config["run"]["attempts"] = 2
    work.config.write_text(json.dumps(config))
    refused = work.run("--resume")
    assert refused.code == 2
    assert "attempts: 1 → 2" in refused.err
    sealed = work.run("--resume-anyway")
    assert sealed.code == 2, "a complete run has revealed its seed; it cannot go on"


def test_an_interrupted_run_can_go_on_under_another_plan(bench: Any) -> None:
    work = bench([question(number) for number in range(6)], "sleep 1; echo 42", run={"max_workers": 1})
    running = subprocess.Popen([*CLI, "run", "--config", str(work.config), "--quiet"], stdout=subprocess.DEVNULL)
    path = work.output / "events.jsonl"
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        journal = path.read_bytes() if path.exists() else b""
        if journal.count(b"agent_started") > journal.count(b"record_written") >= 2:
            break
        time.sleep(0.02)
    running.kill()
    running.wait()
    config = json.loads(work.config.read_text())
    config["harness"]["config"]["command"] = "echo 42"
    work.config.write_text(json.dumps(config))
    assert work.run("--resume").code == 2
    done = work.run("--resume-anyway")
    assert (done.code, done.json["passed"]) == (0, 6), done.err
    breaks = [record for record in work.records() if "plan_break" in record]
    assert len(breaks) == 1
    assert any("config_digest" in line for line in breaks[0]["plan_break"]["changed"])
    attempts = [record for record in work.records() if "plan_break" not in record]
    assert sum(record["lost_starts"] for record in attempts) >= 1, "the agent that was running when the engine died"
    verified = securebench("verify", work.output)
    assert verified.code == 0, verified.out
    assert "another plan" in verified.out


@pytest.mark.parametrize(
    ("flags", "sections", "words"),
    [
        (["--resume-anyway"], {}, "one plan"),
        (["--task", "t1"], {}, "whole pack"),
        ([], {"records": {"sign": False}}, "needs a seal"),
    ],
)
def test_publishable_refuses_what_a_result_must_not_rest_on(
    bench: Any, flags: list[str], sections: dict[str, Any], words: str
) -> None:
    work = bench([question(1)], "echo 42")
    work.config.write_text(json.dumps(json.loads(work.config.read_text()) | sections))
    done = work.run("--publishable", *flags)
    assert done.code == 2
    assert words in done.err
