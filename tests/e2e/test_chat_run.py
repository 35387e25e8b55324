"""Whole runs of the chat harness through the command line, against a scripted model on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import Finished, Workbench, need_bubblewrap, securebench

from securebench.testing.model_server import KEY, Fault, Scene, Turn, mentions, model_server

PROMPT = '''from typing import List


def double(values: List[int]) -> List[int]:
    return [2 * value for value in values]


def double_sum(values: List[int]) -> int:
    """ Sum of the doubled values.
    >>> double_sum([1, 2])
    6
    """
'''
RIGHT = {
    "body": "    return sum(double(values))\n",
    "dedented body": "return sum(double(values))",
    "body in a fence": "The rest:\n\n```python\n    return sum(double(values))\n```\n",
    "whole function": "```python\ndef double_sum(values: List[int]) -> int:\n    return sum(double(values))\n```",
    "whole program": f"```python\n{PROMPT}    return sum(double(values))\n```",
    "own way": "~~~\ndouble_sum = lambda values: 2 * sum(values)\n~~~",
}
WRONG = {
    "nothing": ("", "no_answer"),
    "wrong value": ("    return sum(values)", "wrong_answer"),
    "two blocks": ("```\nreturn 6\n```\n```\nreturn 8\n```", "ambiguous_answer"),
    "cut": ("```python\ndef double_sum(values):\n    return su", "malformed_answer"),
    "prose": ("I would sum the doubled values.", None),
    "forged": ("```python\nimport os\nos._exit(0)\n```", None),
}


def human_eval(name: str) -> dict[str, Any]:
    test = "def check(candidate):\n    assert candidate([1, 2]) == 6\n    assert candidate([]) == 0\n"
    return {
        "id": name.replace(" ", "-"),
        "family": "code_completion",
        "input": {"prompt": f"{PROMPT}    # {name}\n", "language": "python", "entry_point": "double_sum"},
        "eval": {"tests": {"source": "inline", "code": test}},
    }


def run(
    directory: Path, base_url: str, rows: list[dict[str, Any]], key: str = KEY, **more: Any
) -> tuple[Finished, Workbench]:
    need_bubblewrap()
    (directory / "manifest.yaml").write_text("id: chat\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"base_url": base_url, "model": "scripted-1", "api_key_env": "CHAT_KEY"} | more.pop("config", {})
    tester = {
        "schema_version": "0.3",
        "run": {"id": "chat", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "chat", "config": config},
    } | more
    (directory / "tester.yaml").write_text(json.dumps(tester))
    bench = Workbench(directory)
    done = securebench("run", "--config", bench.config, "--json", env={"CHAT_KEY": key})
    written = b"".join(path.read_bytes() for path in bench.output.rglob("*") if path.is_file())
    assert key.encode() not in written + done.out.encode() + done.err.encode()
    return done, bench


def by_id(bench: Workbench) -> dict[str, dict[str, Any]]:
    return {record["task_id"]: record for record in bench.records()}


def test_right_code_of_every_shape_passes_and_wrong_code_fails(tmp_path: Path) -> None:
    said = RIGHT | {name: reply for name, (reply, _) in WRONG.items()}
    scenes = [Scene(mentions(f"# {name}\n"), [Turn(reply)]) for name, reply in said.items()]
    with model_server([], scenes=scenes) as server:
        done, bench = run(tmp_path, server.base_url, [human_eval(name) for name in said])
        assert all(request.key == KEY for request in server.requests)
    assert done.code == 0, done.err
    records = by_id(bench)
    assert {name: records[name.replace(" ", "-")]["passed"] for name in RIGHT} == dict.fromkeys(RIGHT, True)
    for name, (_, reason) in WRONG.items():
        record = records[name.replace(" ", "-")]
        assert record["passed"] is False, name
        assert reason is None or record["failure_reason"] == reason, (name, record)


@pytest.mark.parametrize("provider", ["openai_compatible", "anthropic"])
def test_text_is_answered_and_its_usage_recorded(tmp_path: Path, provider: str) -> None:
    rows = [
        {
            "id": f"q{number}",
            "family": "short_answer",
            "input": {"question": f"{number} * 7?"},
            "eval": {"accepted_answers": [number * 7]},
        }
        for number in (6, 8)
    ]
    with model_server([Turn("Answer: 42", usage=(50, 10, 4))]) as server:
        address = server.url if provider == "anthropic" else server.base_url
        prices = {"input": 1.0, "output": 2.0, "cached_input": 0.5}
        done, bench = run(tmp_path, address, rows, config={"provider": provider, "prices": prices})
    assert done.code == 0, done.err
    records = by_id(bench)
    assert {name: record["passed"] for name, record in records.items()} == {"q6": True, "q8": False}
    assert records["q6"]["usage"]["models"]["input_tokens"] == 50
    assert sorted(records["q6"]["evidence"]) == ["egress.json", "trajectory.json"]


def test_a_prompt_of_ones_own_is_sent_and_a_broken_one_is_named(tmp_path: Path) -> None:
    row = {"id": "q", "family": "short_answer", "input": {"question": "6 * 7?"}, "eval": {"accepted_answers": [42]}}
    (tmp_path / "own.md").write_text("Think hard, for $$1.\n$task\n$collect\n")
    with model_server([Turn("42")]) as server:
        done, _ = run(tmp_path, server.base_url, [row], config={"prompt": "own.md"})
        assert (done.code, len(server.asked)) == (0, 1)
        assert "Think hard, for $1.\n6 * 7?\n" in server.asked[0].text
        (tmp_path / "own.md").write_text("Think.\n$tsk\n")
        done, _ = run(tmp_path, server.base_url, [row], config={"prompt": "own.md"}, run={"id": "b", "output_dir": "b"})
        assert (done.code, len(server.asked)) == (2, 1)
        assert "own.md:2: unknown placeholder $tsk" in done.err


def test_an_endpoint_that_keeps_failing_is_an_error_and_not_a_score(tmp_path: Path) -> None:
    row = {"id": "q", "family": "short_answer", "input": {"question": "6 * 7?"}, "eval": {"accepted_answers": [42]}}
    with model_server([Turn("no such model", status=404)]) as server:
        done, bench = run(tmp_path, server.base_url, [row])
    (record,) = bench.records()
    assert (done.code, record["verification_status"], record["passed"]) == (3, "error", None)
    assert "answered 404" in record["failure_message"]


def test_a_budget_of_requests_fails_what_comes_after(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "family": "short_answer", "input": {"question": f"{n}?"}, "eval": {"accepted_answers": [42]}}
        for n in range(3)
    ]
    with model_server([Turn("42", faults=[Fault(status=429, retry_after="0")])]) as server:
        done, bench = run(tmp_path, server.base_url, rows, budget={"requests": 2})
    assert done.code == 0, done.err
    outcomes = sorted((record["passed"], record["failure_reason"] or "") for record in bench.records())
    assert outcomes == [(False, "budget_exhausted"), (True, ""), (True, "")]


def test_a_terminal_task_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/check.py").write_text("")
    row = {
        "id": "sort",
        "family": "terminal_task",
        "input": {"instructions": "Sort."},
        "eval": {"checker": {"source": "script", "path": "check.py"}},
    }
    with model_server([Turn("done")]) as server:
        done, _ = run(tmp_path, server.base_url, [row])
        assert server.requests == []
    assert done.code == 2
    assert "task sort collects a workspace, which needs an agent" in done.err
