"""How agents come to their end, and whose fault it is: time, budget, crash, a provider that answers nobody."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agents.agent_bench import TERMINAL, AgentBench
from tests.e2e.workbench import need_bubblewrap

from securebench.testing.model_server import Fault, Turn, model_server

ASK = """
import json, os, sys, time, urllib.error, urllib.request
def ask(text, **more):
    body = json.dumps({"model": "scripted-1", "messages": [{"role": "user", "content": text}], **more}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body,
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
"""
DONE = 'open("greeting.txt", "w").write("hello\\n")\n'


@pytest.fixture
def bench(tmp_path: Path) -> AgentBench:
    need_bubblewrap()
    return AgentBench(tmp_path).rows(TERMINAL)


def command(program: str, **more: Any) -> dict[str, Any]:
    model = {"provider": "openai_compatible", "model": "scripted-1", "api_key_env": "THE_KEY"}
    return {"type": "command", "config": {"command": ["python3", "-c", ASK + program], "models": [model], **more}}


def run(bench: AgentBench, harness: dict[str, Any], base_url: str, **sections: Any) -> tuple[Any, list[dict[str, Any]]]:
    for model in harness["config"].get("models", []):
        model["base_url"] = base_url
    done = bench.begin(harness, **sections)
    return done, bench.records()


def test_a_command_uses_a_model_through_the_broker(bench: AgentBench) -> None:
    program = DONE + 'print(ask("hi")); print(os.environ["OPENAI_API_KEY"])'
    with model_server([Turn("Hello there.")]) as model:
        done, (record,) = run(bench, command(program), model.base_url)
    assert (done.code, record["verification_status"]) == (0, "passed")
    assert record["producer_stdout"].startswith("Hello there.\nsk-securebench-")
    assert record["usage"]["models"]["requests"] == 1


def test_time_runs_out_and_what_was_produced_is_kept(bench: AgentBench) -> None:
    program = DONE + "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True); time.sleep(600)"
    began = time.monotonic()
    with model_server([]) as model:
        done, (record,) = run(bench, command(program, timeout_seconds=3), model.base_url)
    assert time.monotonic() - began < 300
    assert done.code == 0
    assert (record["verification_status"], record["failure_reason"]) == ("failed", "producer_timeout")
    assert record["candidate_workspace"].startswith("sha256:")


@pytest.mark.parametrize(
    ("budget", "which"),
    [
        ({"attempt": {"requests": 2}}, "attempt.requests"),
        ({"attempt": {"tokens": 20}}, "attempt.tokens"),
        ({"attempt": {"seconds": 2}}, "attempt.seconds"),
        ({"requests": 2}, "run.requests"),
    ],
)
def test_a_budget_that_is_used_up_fails_the_attempt_with_what_it_had_produced(
    bench: AgentBench, budget: dict[str, Any], which: str
) -> None:
    program = DONE + 'said = [ask(f"{n}") for n in range(4) if not time.sleep(0.7)]; print(said[-1])'
    with model_server(lambda asked: Turn("ok")) as model:
        done, (record,) = run(bench, command(program), model.base_url, budget=budget)
        asked = len(model.asked)
    assert done.code == 0
    assert (record["verification_status"], record["failure_reason"]) == ("failed", "budget_exhausted"), record
    assert which in record["failure_message"]
    assert asked <= 3
    assert record["candidate_workspace"].startswith("sha256:")


def test_money_is_counted_with_the_prices_of_the_configuration(bench: AgentBench) -> None:
    harness = command(DONE + 'print([ask(f"{n}") for n in range(4)])')
    harness["config"]["models"][0]["prices"] = {"input": 1000.0, "output": 10000.0}
    with model_server(lambda asked: Turn("ok", usage=(10, 0, 5))) as model:
        _, (record,) = run(bench, harness, model.base_url, budget={"attempt": {"usd": 0.1}})
    assert record["failure_reason"] == "budget_exhausted"
    assert record["cost"] == pytest.approx(0.12)


def test_an_agent_that_goes_on_without_a_budget_is_ended(bench: AgentBench) -> None:
    program = DONE + 'print("begun", flush=True)\nwhile True: ask("again"); time.sleep(0.1)'
    began = time.monotonic()
    with model_server(lambda asked: Turn("ok")) as model:
        _, (record,) = run(bench, command(program), model.base_url, budget={"attempt": {"requests": 1}})
    assert time.monotonic() - began < 300
    assert record["failure_reason"] == "budget_exhausted", record["failure_message"]
    assert record["producer_stdout"] == "begun\n"
    assert record["candidate_workspace"].startswith("sha256:")


def test_a_run_out_of_budget_fails_the_rest_without_starting_it(bench: AgentBench) -> None:
    bench.rows(*({**TERMINAL, "id": f"greet{number}"} for number in range(3)))
    program = DONE + 'print(ask("hi"))'
    with model_server(lambda asked: Turn("ok")) as model:
        done, records = run(
            bench,
            command(program),
            model.base_url,
            budget={"requests": 1},
            run={"id": "r", "output_dir": "out", "max_workers": 1},
        )
    assert done.code == 0
    records.sort(key=lambda record: record["task_id"])  # what is not started is recorded first
    assert [(r["verification_status"], r["failure_reason"]) for r in records] == [
        ("passed", None),
        ("failed", "budget_exhausted"),
        ("failed", "budget_exhausted"),
    ]
    assert "exit_code" not in records[1]["producer_metadata"], "it was never started"


def test_a_crash_is_the_agents_fault(bench: AgentBench) -> None:
    with model_server(lambda asked: Turn("ok")) as model:
        done, (record,) = run(bench, command('ask("hi"); os.abort()'), model.base_url)
    assert done.code == 0
    assert (record["verification_status"], record["failure_reason"]) == ("failed", "producer_failed")


@contextmanager
def dead_server() -> Iterator[str]:
    """An address that takes connections and ends them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            over.set()
            thread.join()


def test_a_provider_that_answers_nobody_is_the_hosts_fault(bench: AgentBench) -> None:
    with dead_server() as base_url:
        done, (record,) = run(bench, command('sys.exit(ask("hi"))'), base_url)
    assert done.code == 3
    assert record["verification_status"] == "error"
    assert "no model answered" in record["failure_message"]


def test_a_provider_that_lists_models_and_serves_none_is_the_hosts_fault(bench: AgentBench) -> None:
    with model_server(lambda asked: Turn("ok", faults=[Fault(status=429, retry_after="0")] * 1000)) as model:
        done, (record,) = run(bench, command('sys.exit(ask("hi"))'), model.base_url)
    assert (done.code, record["verification_status"]) == (3, "error")
    assert "429" in done.err


def test_a_wrong_key_is_the_operators_fault(bench: AgentBench) -> None:
    with model_server([Turn("ok")], key="sk-another-0123456789") as model:
        done, (record,) = run(bench, command('sys.exit(ask("hi"))'), model.base_url)
    assert (done.code, record["verification_status"]) == (3, "error")


def test_errors_an_agent_provokes_are_its_own(bench: AgentBench) -> None:
    """Its requests fail for ever, those of the operator do not: so the provider is not to blame."""
    broken = Turn("ok", faults=[Fault(status=500)] * 1000)
    with model_server(lambda asked: broken if "boom" in asked.text else Turn("ok")) as model:
        done, (record,) = run(bench, command('sys.exit(ask("boom"))'), model.base_url)
    assert done.code == 0
    assert (record["verification_status"], record["failure_reason"]) == ("failed", "producer_failed")


def test_what_the_operator_exports_does_not_lead_an_agent_past_its_broker(
    bench: AgentBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.example/v1")
    with model_server([Turn("Hello.")]) as model:
        _, (record,) = run(bench, {**command('print(ask("hi"))'), "env": ["OPENAI_BASE_URL"]}, model.base_url)
    assert record["producer_stdout"] == "Hello.\n"


@pytest.mark.parametrize("wish", [["no-such-agent"], ["/opt/no-such-agent", "x"]])
def test_a_harness_whose_program_is_missing_is_told_before_anything_runs(bench: AgentBench, wish: list[str]) -> None:
    done = bench.begin({"type": "command", "config": {"command": wish}})
    assert done.code == 2
    assert wish[0] in done.err
    assert "cannot be started" in done.err


def test_a_secret_in_the_environment_is_refused_with_the_way_to_use_it(bench: AgentBench) -> None:
    done = bench.begin({"type": "command", "env": ["THE_KEY"], "config": {"command": "true"}})
    assert done.code == 2
    assert "THE_KEY (by its name)" in done.err
    assert "api_key_env" in done.err


def test_the_reference_agent_is_never_scored(bench: AgentBench) -> None:
    done = bench.begin({"type": "reference"})
    assert done.code == 2
    assert "securebench validate" in done.err


def test_a_budget_without_models_is_refused(bench: AgentBench) -> None:
    done = bench.begin({"type": "command", "config": {"command": "true"}}, budget={"tokens": 5})
    assert done.code == 2
    assert "budget" in done.err


def test_what_went_out_is_evidence(bench: AgentBench) -> None:
    with model_server([Turn("ok")]) as model:
        _, (record,) = run(
            bench, command(DONE + 'ask("hi"); ask("hi", tools=[{"type": "web_search"}])'), model.base_url
        )
    first, second = json.loads(bench.evidence(record, "egress.json"))["exchanges"]
    assert (first["status"], first["refused"]) == (200, None)
    assert second["status"] == 400
    assert "web_search" in second["refused"]
    told = json.loads(bench.evidence(record, "trajectory.json"))["steps"]
    assert told[1]["message"] == "POST /chat/completions for scripted-1: 200"
    assert "refused" in told[2]["message"]
    assert told[1]["metrics"]["completion_tokens"] == 5
