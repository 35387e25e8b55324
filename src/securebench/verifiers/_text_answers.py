"""What the text verifiers share: typed models out of the evaluator's view, a verdict into a result."""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from securebench import _json
from securebench.answers.verdict import TextVerdict
from securebench.errors import PackError
from securebench.families.base import EvalModel, Family, InputModel
from securebench.resources import ResourceView
from securebench.verifiers.base import Assurance, Status, VerificationResult

M = TypeVar("M", bound=BaseModel)


def typed(model: type[M], evaluator: ResourceView, task_id: str, without: Collection[str] = ()) -> M:
    """The model's declared fields out of the view, but those in `without`; undeclared hidden keys are left alone.

    Raises PackError where the row was not checked before it came here; the message repeats no value."""
    values = evaluator.values()
    declared = {name: values[name] for name in model.model_fields if name in values and name not in without}
    try:
        return model.model_validate_json(_json.dumps(declared))
    except ValidationError as error:
        places = sorted({".".join(map(str, detail["loc"])) for detail in error.errors(include_input=False)})
        raise PackError(f"task {task_id}: not a checked row; wrong or missing: {', '.join(places)}") from None


def require_checked(family: Family, public: InputModel, private: EvalModel, task_id: str) -> None:
    """Raises PackError if input and eval contradict each other, naming the places only."""
    places = sorted({".".join(map(str, place)) for place, _ in family.check(public, private)})
    if places:
        raise PackError(f"task {task_id}: not a checked row; wrong: {', '.join(places)}")


def result(task_id: str, verdict: TextVerdict) -> VerificationResult:
    return VerificationResult(
        task_id=task_id,
        status=Status.PASSED if verdict.passed else Status.FAILED,
        passed=verdict.passed,
        score=1.0 if verdict.passed else 0.0,
        assurance=Assurance.PURE,
        failure_reason=verdict.reason,
        # Not the answer: it stands in the candidate, and scrubbing it here would mark what was right in it.
        metadata=MappingProxyType({"rule": verdict.rule}),
    )
