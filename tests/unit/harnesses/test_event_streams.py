"""What the real tools print becomes steps; what hostile ones print becomes nothing worse than an odd story."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.harnesses.claude_code import ClaudeCodeAgent
from securebench.harnesses.codex import CodexAgent
from securebench.harnesses.trajectory import MAX_DEPTH, MAX_STEPS, MAX_TEXT, Metrics, Step, ToolCall, Trajectory

SAMPLES = Path(__file__).parent / "samples"
READERS = {"codex": CodexAgent, "claude": ClaudeCodeAgent}


def steps(sample: str) -> list[Step]:
    reader = READERS[sample.partition("-")[0]]
    return list(reader.steps(object.__new__(reader), (SAMPLES / sample).read_bytes()))


def test_codex_messages_and_commands_are_steps() -> None:
    found = steps("codex-shell.jsonl")
    assert [(step.source, step.message) for step in found] == [("agent", "I write the file."), ("agent", "All done.")]
    call = found[0].tool_calls[0]
    assert (call.name, call.result) == ("command_execution", "hello")
    assert "printf hello" in call.arguments["command"]


def test_codex_failed_commands_show_their_exit_code_and_changed_files_are_calls() -> None:
    calls = [call for step in steps("codex-patch.jsonl") for call in step.tool_calls]
    assert calls[0].result == "cat: missing.txt: No such file or directory\n\n[exit code 1]"
    assert calls[2].arguments == {"changes": [{"path": "/workspace/out.txt", "kind": "add"}]}


def test_claude_blocks_of_one_message_are_one_step_and_results_stand_beside_their_calls() -> None:
    found = steps("claude-write.jsonl")
    assert [step.message for step in found] == ["", "Now the file.", "All done."]
    assert [call.result for call in found[0].tool_calls] == [
        "Exit code 1\ncat: missing.txt: No such file or directory",
        "two",
    ]
    assert found[0].metrics == Metrics(prompt_tokens=1200, completion_tokens=1, cached_tokens=1000)


@pytest.mark.parametrize("sample", ["codex-refused.jsonl", "claude-refused.jsonl"])
def test_what_went_wrong_is_told_by_the_system(sample: str) -> None:
    assert any(step.source == "system" and "401" in step.message for step in steps(sample))


@pytest.mark.parametrize("sample", ["codex-retried.jsonl", "claude-retried.jsonl"])
def test_a_second_try_is_told_and_the_story_goes_on(sample: str) -> None:
    found = steps(sample)
    assert "system" in [step.source for step in found]
    assert found[-1].message == "All done."


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "item", "message", "content", "id", "text", "usage"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
_EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from(["item.completed", "assistant", "user", "system", "result", "error"])},
    optional={"item": _JSON, "message": _JSON, "error": _JSON, "subtype": _JSON},
)


@given(st.lists(_EVENT | _JSON, max_size=6), st.binary(max_size=40))
def test_no_event_whatever_its_shape_breaks_the_readers(values: list[Any], noise: bytes) -> None:
    lines = [json.dumps(value).encode() for value in values]
    for reader in READERS.values():
        found = reader.steps(object.__new__(reader), b"\n".join([*lines, noise, *lines]))
        json.loads(Trajectory("t#1", "a", "1", None, found).encode())


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _said(*blocks: dict[str, Any]) -> bytes:
    return _line({"type": "assistant", "message": {"id": "m", "content": blocks}})


@pytest.mark.parametrize("depth", [100, 400, 480, 900, 980])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_results_nested_however_deeply_break_no_reader(depth: int, opening: str, closing: str) -> None:
    nested = (opening * depth + "1" + closing * depth).encode()
    call = _said({"type": "tool_use", "id": "1", "name": "b", "input": {}})
    result = b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":%b}]}}\n'
    item = b'{"type":"item.completed","item":{"id":"1","type":"mcp_tool_call","arguments":%b,"result":%b}}\n'
    output = call + result % nested + item % (nested, nested)
    for reader in READERS.values():
        found = reader.steps(object.__new__(reader), output)
        json.loads(Trajectory("t#1", "a", "1", None, found).encode())


def test_a_message_of_very_many_blocks_is_read_in_a_time_that_grows_with_its_size_only() -> None:
    """Pasting texts together one by one, or looking for every result among all calls, would take minutes here."""
    many = 40_000
    calls = _said(*({"type": "tool_use", "id": str(i), "name": "b", "input": {}} for i in range(many)))
    results = [{"type": "tool_result", "tool_use_id": str(i), "content": "x"} for i in range(many)]
    texts = _said(*({"type": "text", "text": "x" * 300} for _ in range(many)))
    output = calls + _line({"type": "user", "message": {"content": results}}) + texts
    began = time.process_time()
    called, said = ClaudeCodeAgent.steps(object.__new__(ClaudeCodeAgent), output)
    assert time.process_time() - began < 10
    assert [call.result for call in called.tool_calls] == ["x"] * many
    assert len(said.message) == 301 * many - 1


def test_a_trajectory_is_bounded_scrubbed_and_says_what_it_lost() -> None:
    deep: Any = "x"
    for _ in range(MAX_DEPTH + 5):
        deep = [deep]
    many = [Step("agent", "no")] * (MAX_STEPS + 7)
    told = Step("agent", "key sk-1 " + "y" * MAX_TEXT, tool_calls=[ToolCall("1", "sh", {"sk-1": deep}, "\ud800 sk-1")])
    data = Trajectory("t#1", "codex", "1.0", "m", [told, *many], Metrics(5, 6)).encode(["sk-1"])
    shown = json.loads(data)
    assert b"sk-1" not in data
    assert shown["extra"] == {"dropped_steps": 8}
    assert len(shown["steps"]) == MAX_STEPS
    assert len(shown["steps"][0]["message"]) == MAX_TEXT
    assert shown["final_metrics"] == {
        "total_prompt_tokens": 5,
        "total_completion_tokens": 6,
        "total_steps": MAX_STEPS + 8,
    }
    assert shown["schema_version"].startswith("ATIF-v1")
    assert shown["steps"][0]["observation"]["results"][0]["source_call_id"] == "1"
