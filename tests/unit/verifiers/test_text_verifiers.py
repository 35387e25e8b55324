"""The verifier classes: from an evaluator's view and a candidate to a result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from securebench import _json
from securebench.candidates.artifact import CandidateArtifact
from securebench.egress.model_endpoint import ModelEndpoint
from securebench.errors import FailureReason, PackError
from securebench.families.base import CandidateKind
from securebench.families.registry import FAMILIES
from securebench.resources import Component, Resource, ResourceBundle, ResourceView, Visibility
from securebench.testing import scripted_judge as judges
from securebench.testing.scripted_judge import scripted_judge
from securebench.verifiers.base import Assurance, Status, Verification, VerificationResult
from securebench.verifiers.judge.panel import Panel
from securebench.verifiers.registry import verifier_for_task_type

SECRET = "s3cr3t-marker"
PARTS = {"tests": Component.TEST_SANDBOX, "worker": Component.WORKER}


def view(public: dict[str, Any], hidden: dict[str, Any]) -> ResourceView:
    resources = [Resource(name, Visibility.PUBLIC, value) for name, value in public.items()]
    resources += [Resource(name, Visibility.HIDDEN, value) for name, value in hidden.items()]
    return ResourceBundle(tuple(resources)).view(Component.EVALUATOR)


def verify(family: str, evaluator: ResourceView, text: str | None, judge: Panel | None = None) -> VerificationResult:
    verifier = verifier_for_task_type(family)
    assert verifier is not None
    candidate = CandidateArtifact(task_id="t", kind=CandidateKind.TEXT, text=text)
    nothing = {part: ResourceView(component, ()) for part, component in PARTS.items()}
    return asyncio.run(verifier.verify(Verification("t", candidate, evaluator, **nothing, judge=judge)))


ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "multiple_choice": ({"question": "?", "choices": ["x", SECRET]}, {"answer": SECRET}, "B"),
    "short_answer": ({"question": "?"}, {"accepted_answers": [SECRET]}, SECRET),
    "free_response": (
        {"prompt": "?"},
        {
            "rubric": {"type": "contains_any", "accepted_answers": [SECRET]},
            "reference_answer": {"path": "notes/answer.md"},
        },
        SECRET,
    ),
}


@pytest.mark.parametrize("family", ROWS)
def test_right_answer_passes_with_pure_assurance(family: str) -> None:
    public, hidden, right = ROWS[family]
    result = verify(family, view(public, hidden), right)
    assert (result.status, result.passed, result.score) == (Status.PASSED, True, 1.0)
    assert result.assurance is Assurance.PURE
    assert result.failure_reason is None
    assert result.task_id == "t"
    assert result.metadata["rule"]


@pytest.mark.parametrize("family", ROWS)
@pytest.mark.parametrize("text", ["wrong", "", None, "\ud800", "x" * 1_000_000, "Answer: \u202e"])
def test_anything_else_is_a_counted_failure_that_tells_nothing_hidden(family: str, text: str | None) -> None:
    public, hidden, _ = ROWS[family]
    result = verify(family, view(public, hidden), text)
    assert (result.status, result.passed, result.score) == (Status.FAILED, False, 0.0)
    assert (result.failure_reason is FailureReason.NO_ANSWER) == (not text)
    assert result.failure_reason is not None
    assert result.task_id == "t"
    assert result.metadata["rule"]
    assert SECRET not in _json.dumps(dict(result.metadata)) + result.stdout + result.stderr


@pytest.mark.parametrize("family", ROWS)
def test_hidden_keys_that_nobody_declared_change_nothing(family: str) -> None:
    public, hidden, right = ROWS[family]
    assert verify(family, view(public, {**hidden, "note": "x", "choices_note": ["A"]}), right).passed


def test_judge_rubric_stays_pending_and_says_why() -> None:
    judge = {"type": "judge", "criteria": SECRET, "controls": [{"response": ""}]}
    result = verify("free_response", view({"prompt": "?"}, {"rubric": judge}), "anything")
    assert (result.task_id, result.status, result.passed, result.score) == ("t", Status.PENDING, False, 0.0)
    assert result.assurance is Assurance.PURE
    assert result.failure_reason is None
    assert "judge" in result.metadata["note"]


@pytest.mark.parametrize("text, passes", [("The capital is Canberra.", True), ("It is Sydney.", False), (None, False)])
def test_judge_is_asked_about_this_task_and_this_response(text: str | None, passes: bool) -> None:
    public = {"prompt": "What is the capital of Australia?"}
    controls = [{"response": "The capital is Canberra.", "passes": True}, {"response": "It is Sydney."}]
    rubric = {"type": "judge", "criteria": "Names the right city and no other.", "controls": controls}
    with scripted_judge(judges.honest) as server:
        panel = Panel(ModelEndpoint(server.address, "scripted", "k3y"), 1)
        result = verify("free_response", view(public, {"rubric": rubric, "reference_answer": "Canberra"}), text, panel)
    assert (result.task_id, result.passed) == ("t", passes)


@pytest.mark.parametrize(
    "family, public, hidden",
    [
        ("multiple_choice", {"question": "?", "choices": ["x", "y"]}, {"answer": SECRET}),
        ("multiple_choice", {"question": "?"}, {"answer": SECRET}),
        ("short_answer", {"question": "?"}, {"accepted_answers": [[SECRET]]}),
        ("free_response", {"prompt": "?"}, {}),
    ],
)
def test_row_that_was_never_checked_is_the_packs_fault_and_never_a_verdict(
    family: str, public: dict[str, Any], hidden: dict[str, Any]
) -> None:
    with pytest.raises(PackError) as caught:
        verify(family, view(public, hidden), "A")
    assert SECRET not in str(caught.value)
    assert str(caught.value).startswith("task t: not a checked row")


def test_registry_knows_a_verifier_exactly_where_the_family_names_one() -> None:
    for name, family in FAMILIES.items():
        if family.verifier is None:
            assert verifier_for_task_type(name) is None
    assert verifier_for_task_type("no_such_family") is None


def test_failure_reasons_of_text_answers_are_the_four_of_the_design() -> None:
    public, hidden, _ = ROWS["multiple_choice"]
    evaluator = view(public, hidden)
    reasons = {verify("multiple_choice", evaluator, text).failure_reason for text in ("", "?", "A B", "A")}
    assert reasons == {
        FailureReason.NO_ANSWER,
        FailureReason.MALFORMED_ANSWER,
        FailureReason.AMBIGUOUS_ANSWER,
        FailureReason.WRONG_ANSWER,
    }
