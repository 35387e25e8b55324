"""Details of attempts: everything that is told, nothing that is hidden, and records of any content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.candidates.store import CandidateStore, file_entry
from securebench.candidates.tree import Tree
from securebench.harnesses.trajectory import Metrics, ToolCall, Trajectory
from securebench.harnesses.trajectory import Step as Said
from securebench.reports.clips import Clip, clip
from securebench.reports.details import EVERYTHING, Bounds, detail_of
from securebench.reports.transcript import read_transcript

SMALL = Bounds(100, 5, 3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FIELDS = (
    *("candidate_text", "candidate_patch", "candidate_workspace", "producer_stdout", "producer_metadata", "controls"),
    *("verifier_stdout", "verifier_metadata", "resource_summary", "usage", "cost", "evidence", "timings", "digests"),
)


@given(st.text(max_size=300), st.integers(0, 200))
def test_a_clip_keeps_beginning_and_end_and_counts_the_rest(text: str, limit: int) -> None:
    kept = clip(text, limit)
    assert len(kept.start) + len(kept.end) <= max(limit, len(text) if not kept.left_out else 0)
    assert len(kept.start) + kept.left_out + len(kept.end) == len(text)
    assert text.startswith(kept.start)
    assert text.endswith(kept.end)
    assert kept.as_json() == (
        text if not kept.left_out else {"start": kept.start, "left_out": kept.left_out, "end": kept.end}
    )


def test_everything_of_a_record_is_told(tmp_path: Path) -> None:
    record = {
        "failure_message": "2 of 3 tests did not pass",
        "candidate_text": "answer",
        "producer_stdout": "answer",
        "producer_stderr": "thinking",
        "producer_metadata": {"outcome": "exited", "exit_code": 3, "wall_seconds": 1.5, "cpu_seconds": 0.5},
        "verifier_stderr": "no",
        "verifier_metadata": {
            "rule": "final_line",
            "note": "read",
            "outcomes": [{"outcome": "failed", "why": "wrong"}],
        },
        "resource_summary": {
            "question": {"visibility": "public", "value": "6 * 7?"},
            "choices": {"visibility": "public", "value": ["one", "two"]},
        },
        "controls": [{"name": "canary", "held": None, "detail": "not run"}],
        "usage": {"peak_memory": 2**20, "models": {"requests": 1, "input_tokens": 1000}},
        "cost": 0.25,
        "repeats": [{}],
        "digests": {"candidate": "sha256:abc"},
    }
    told = detail_of(record, CandidateStore(tmp_path), EVERYTHING)
    assert told.message == "2 of 3 tests did not pass"
    assert told.asked == (("question", Clip("6 * 7?")), ("choices", Clip("A. one\nB. two")))
    assert told.candidate is not None
    assert told.candidate.content == Clip("answer")
    assert [(test.name, test.outcome, test.why) for test in told.tests] == [("1", "failed", "wrong")]
    assert [(one.name, one.held) for one in told.controls] == [("canary", None)]
    assert dict(told.texts) == {
        "Verdict": Clip("final_line; read"),
        "Verifier messages": Clip("no"),
        "Agent messages": Clip("thinking"),
    }, "what was printed and is the candidate is told once"
    facts = dict(told.facts)
    assert facts["Agent ended"] == "exited, exit code 3"
    assert facts["Cost"] == "0.2500 USD"
    assert facts["Faults of the host"] == "1 tried again"
    assert facts["Digest of the candidate"] == "sha256:abc"
    json.dumps(told.as_json())


def test_private_fields_are_not_even_read(tmp_path: Path) -> None:
    fields = {
        "question": {"visibility": "public", "value": "?"},
        "answer": {"visibility": "hidden", "value": "SECRET"},
        "tests": {"visibility": "evaluation_inputs", "value": "SECRET"},
        "strange": {"value": "SECRET"},
    }
    told = detail_of({"resource_summary": fields}, CandidateStore(tmp_path), EVERYTHING)
    assert "SECRET" not in json.dumps(told.as_json())
    assert [name for name, _ in told.asked] == ["question"]


@pytest.mark.parametrize(
    "metadata, names",
    [
        ({"tests": ["passed", "failed"]}, ["1 passed", "2 failed"]),
        (
            {"tests": {"fail_to_pass": ["failed"], "pass_to_pass": ["passed"], "count": 2}},
            ["must pass now 1 failed", "must still pass 1 passed"],
        ),
        ({"outcomes": [{"outcome": "passed", "test": 0}], "tests": {"planned": 1}}, ["1 passed"]),
    ],
)
def test_tests_of_every_verifier_are_told(tmp_path: Path, metadata: dict[str, Any], names: list[str]) -> None:
    told = detail_of({"verifier_metadata": metadata}, CandidateStore(tmp_path), EVERYTHING)
    assert [f"{test.name} {test.outcome}" for test in told.tests] == names


def test_a_workspace_is_told_by_its_files(tmp_path: Path) -> None:
    store = CandidateStore(tmp_path)
    with store.batch() as batch:
        tree = Tree.of([file_entry(f"{n}.txt", b"x" * n, batch) for n in range(5)])
    digest = store.save(tree)
    told = detail_of({"candidate_workspace": digest}, store, SMALL)
    assert told.candidate is not None
    assert told.candidate.files == (("0.txt", 0), ("1.txt", 1), ("2.txt", 2))
    assert told.candidate.more_files == 2
    gone = detail_of({"candidate_workspace": "sha256:" + "0" * 64}, store, SMALL)
    assert gone.candidate is not None
    assert "cannot be read" in gone.candidate.problem


def _trajectory(steps: int) -> bytes:
    calls = [ToolCall("c1", "shell", {"command": "ls"}, "a.py"), ToolCall("c2", "edit", {"path": "a", "text": "b"})]
    said = [Said("agent", f"step {n}", "because", calls, Metrics(10, 5, None, 0.25)) for n in range(steps)]
    return Trajectory("s", "chat", "1", "large", [Said("user", "do it"), *said]).encode()


def test_a_transcript_is_a_timeline(tmp_path: Path) -> None:
    store = CandidateStore(tmp_path)
    digest = store.put(_trajectory(2))
    told = detail_of({"evidence": {"trajectory.json": {"digest": digest, "size": 1}}}, store, EVERYTHING)
    assert told.transcript is not None
    assert (told.transcript.agent, told.transcript.model, told.transcript.more) == ("chat", "large", 0)
    assert [step.source for step in told.transcript.steps] == ["user", "agent", "agent"]
    step = told.transcript.steps[1]
    assert (step.message, step.reasoning, step.tokens, step.cost) == (Clip("step 0"), Clip("because"), 15, 0.25)
    assert step.calls[0].arguments == Clip("ls")
    assert step.calls[0].result == Clip("a.py")
    assert step.calls[1].result is None
    assert "path" in step.calls[1].arguments.start


def test_steps_beyond_the_bound_are_counted() -> None:
    told = read_transcript(_trajectory(20), 5, 100)
    assert (len(told.steps), told.more) == (5, 16)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"steps": 7}', b"\xff", b"x" * 1000])
def test_a_transcript_that_is_none_says_so(tmp_path: Path, data: bytes) -> None:
    store = CandidateStore(tmp_path)
    digest = store.put(data)
    told = detail_of({"evidence": {"trajectory.json": {"digest": digest, "size": 1}}}, store, EVERYTHING)
    assert told.transcript is None
    assert told.no_transcript.startswith("The transcript cannot be read")


@given(st.lists(st.dictionaries(st.sampled_from(["source", "message", "tool_calls", "observation", "metrics"]), JSON)))
def test_steps_of_any_content_are_read(steps: list[dict[str, Any]]) -> None:
    told = read_transcript(json.dumps({"steps": steps}).encode("utf-8", "surrogatepass"), 100, 50)
    json.dumps(told.as_json())


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_records_of_any_content_are_told(record: dict[str, Any]) -> None:
    told = detail_of(record, CandidateStore(Path("/nonexistent")), SMALL)
    json.dumps(told.as_json())
    assert len(told.tests) <= SMALL.listed
