"""Samples as people have them: which are read, what becomes of them, and whose fault it is when nothing does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from securebench.candidates.extraction import MAX_PATCH_BYTES, MAX_TEXT_BYTES
from securebench.candidates.store import CandidateStore
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, ConfigError, FailureReason
from securebench.families.base import CandidateKind
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.samples import NotASample, Sample, SamplesProducer, candidate_of, check_kind, read_sample
from securebench.resources import Component, ResourceView
from securebench.workspaces.workspace import MAX_PATCH_TEXT

PROMPT = 'import math\n\ndef f(x):\n    """Twice x."""\n'
PUBLIC = {"prompt": PROMPT, "language": "python", "entry_point": "f"}
CODE, TEXT, PATCH = CandidateKind.CODE, CandidateKind.TEXT, CandidateKind.PATCH


def production(sample: Any, kind: CandidateKind = CODE) -> Production:
    request = ProducerRequest(
        task_id="t",
        attempt=1,
        kind=kind,
        payload={"input": PUBLIC},
        view=ResourceView(Component.AGENT, ()),
        environment=TaskEnvironment(),
        store=CandidateStore(Path("/nowhere")),
        sample=sample if sample is None or isinstance(sample, bytes) else json.dumps(sample).encode(),
        line=7,
    )
    return anyio.run(SamplesProducer("sha256:file").produce, request)


@pytest.mark.parametrize(
    ("value", "sample"),
    [
        ({"task_id": "HumanEval/0", "completion": "    return 1"}, Sample("HumanEval/0", "completion", "    return 1")),
        ({"task_id": "Mbpp/2", "solution": "x", "_identifier": "a"}, Sample("Mbpp/2", "solution", "x")),
        (
            {"instance_id": "a__b-1", "model_patch": "diff", "model_name_or_path": "m"},
            Sample("a__b-1", "model_patch", "diff", "m"),
        ),
        ({"task_id": "t", "solution": "x", "model_name_or_path": ["m"]}, Sample("t", "solution", "x")),
        ({"task_id": "t", "solution": "x", "model_name_or_path": "m" * 999}, Sample("t", "solution", "x", "m" * 200)),
        ({"task_id": 11, "solution": ""}, Sample("11", "solution", "")),
        ({"task_id": "t", "model_reply": "B"}, Sample("t", "model_reply", "B")),
        ({"task_id": "t", "completion": None, "passed": True, "result": "passed"}, Sample("t", "completion", None)),
    ],
)
def test_formats_people_have_are_read_unchanged(value: Any, sample: Sample) -> None:
    assert read_sample(value) == sample


@pytest.mark.parametrize(
    ("value", "key", "message"),
    [
        ([], "", "expected an object, found a list"),
        ({"completion": "x"}, "", "names no task"),
        ({"task_id": "t", "instance_id": "t", "completion": "x"}, "", "names its task twice"),
        ({"task_id": None, "completion": "x"}, "task_id", "expected the id of a task"),
        ({"task_id": True, "completion": "x"}, "task_id", "expected the id of a task"),
        ({"task_id": "t"}, "", "holds no candidate: give exactly one of completion, solution, model_patch"),
        ({"task_id": "t", "completions": ["x"]}, "", "holds no candidate"),
        ({"task_id": "t", "completion": "x", "solution": "y"}, "", "holds completion and solution"),
        ({"task_id": "t", "completion": ["x"]}, "completion", "expected text, found a list"),
    ],
)
def test_what_is_no_sample_is_told(value: Any, key: str, message: str) -> None:
    with pytest.raises(NotASample, match=message) as caught:
        read_sample(value)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("key", "kind", "message"),
    [
        ("model_patch", CODE, "collects a code: give completion or solution"),
        ("completion", PATCH, "collects a patch: give model_patch"),
        ("solution", CandidateKind.WORKSPACE, "collects a workspace, which no sample holds"),
    ],
)
def test_samples_of_another_kind_are_refused(key: str, kind: CandidateKind, message: str) -> None:
    with pytest.raises(NotASample, match=message):
        check_kind(Sample("t", key, "x"), kind)


@pytest.mark.parametrize(
    ("key", "text", "kind", "content"),
    [
        ("completion", "    return 2 * x\n", CODE, PROMPT + "    return 2 * x\n"),
        ("completion", "def f(x): return 2 * x", CODE, "import math\ndef f(x): return 2 * x"),
        ("solution", "    return 2 * x\n", CODE, "    return 2 * x\n"),
        ("completion", "Answer: 4", TEXT, "Answer: 4"),
        ("solution", "Answer: 4", TEXT, "Answer: 4"),
        ("model_patch", "--- a\n+++ b", PATCH, "--- a\n+++ b\n"),
        ("model_patch", "", PATCH, ""),
    ],
)
def test_candidate_is_what_the_sample_says(key: str, text: str, kind: CandidateKind, content: str) -> None:
    candidate = candidate_of(Sample("t", key, text), kind, PUBLIC)
    assert candidate is not None
    assert (candidate.content, candidate.kind) == (content, kind)


def test_completion_in_another_language_stands_alone() -> None:
    candidate = candidate_of(Sample("t", "completion", "int main;"), CODE, PUBLIC | {"language": "cpp"})
    assert candidate is not None
    assert candidate.text == "int main;"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * (MAX_TEXT_BYTES + 1), FailureReason.CANDIDATE_TOO_LARGE),
        ("half \ud800 a character", FailureReason.CANDIDATE_REFUSED),
    ],
)
def test_text_that_cannot_be_judged_is_the_candidates_fault(text: str, reason: FailureReason) -> None:
    with pytest.raises(CandidateError, match="the sample"):
        candidate_of(Sample("t", "solution", text), CODE, PUBLIC)
    made = production({"task_id": "t", "solution": text})
    assert made.failure is not None
    assert (made.candidate, made.failure.reason, made.fault) == (None, reason, None)


def test_patch_may_be_as_long_as_one_that_is_rendered_here() -> None:
    assert MAX_PATCH_BYTES >= 4 * MAX_PATCH_TEXT  # the latter are characters
    longest = "x" * (MAX_PATCH_BYTES - 1) + "\n"
    candidate = candidate_of(Sample("t", "model_patch", longest), PATCH, PUBLIC)
    assert candidate is not None
    assert candidate.patch == longest
    for key, text in (("model_patch", f"{longest}x"), ("model_reply", "x" * (MAX_TEXT_BYTES + 1))):
        with pytest.raises(CandidateError) as caught:
            candidate_of(Sample("t", key, text), PATCH, PUBLIC)
        assert caught.value.reason is FailureReason.CANDIDATE_TOO_LARGE


def test_production_says_where_its_candidate_stood() -> None:
    made = production({"task_id": "t", "completion": "    return 2 * x\n"})
    assert made.metadata["samples"] == "sha256:file"
    assert made.metadata["line"] == 7
    assert made.metadata["candidate"] == {"source": "completion", "joined": "continued"}


def test_production_says_which_model_the_sampler_named() -> None:
    assert production({"task_id": "t", "solution": "x", "model_name_or_path": "m"}).metadata["agent"] == {"model": "m"}
    assert "agent" not in production({"task_id": "t", "solution": "x"}).metadata


def test_task_without_a_sample_fails_and_is_not_left_out() -> None:
    made = production(None)
    assert made.failure is not None
    assert made.failure.reason is FailureReason.NO_CANDIDATE


def test_sample_that_is_null_produced_nothing() -> None:
    made = production({"task_id": "t", "completion": None})
    assert (made.candidate, made.failure) == (None, None)  # the court then says `no_candidate`


def test_sample_that_nobody_checked_is_no_candidate() -> None:
    with pytest.raises(ConfigError, match="not a checked sample"):
        production({"task_id": "t", "model_patch": "x"})


def test_a_line_that_passed_the_check_but_cannot_be_read_here_is_its_authors_fault() -> None:
    """How deep values may be nested depends on how deep the reader is, and a line may lie between two readers."""
    line = b'{"task_id": "t", "completion": "    return 1", "more": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    failure = production(line).failure
    assert failure is not None
    assert failure.reason is FailureReason.CANDIDATE_REFUSED


@pytest.mark.parametrize(
    ("reply", "kind", "content"),
    [
        ("Sure:\n```python\ndef f(x):\n    return 2 * x\n```\n", CODE, "import math\ndef f(x):\n    return 2 * x\n"),
        ("Here:\n````diff\nx\n```\n````\n", PATCH, "x\n```\n"),
        ("I think it is\nAnswer: B", TEXT, "I think it is\nAnswer: B"),
    ],
)
def test_reply_is_read_as_those_of_chat(reply: str, kind: CandidateKind, content: str) -> None:
    made = production({"task_id": "t", "model_reply": reply}, kind)
    assert made.failure is None
    assert made.candidate is not None
    assert made.candidate.content == content


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```\na\n```\n```\nb\n```\n", FailureReason.AMBIGUOUS_ANSWER),
        ("```\na", FailureReason.MALFORMED_ANSWER),
        (" \n", FailureReason.NO_ANSWER),
    ],
)
@pytest.mark.parametrize("kind", [CODE, PATCH])
def test_reply_without_one_answer_fails(reply: str, reason: FailureReason, kind: CandidateKind) -> None:
    made = production({"task_id": "t", "model_reply": reply}, kind)
    assert made.candidate is None
    assert made.failure is not None
    assert made.failure.reason is reason
