"""What is asked and what is answered, as closed models: the same that check requests describe the service."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from securebench._schema import ClosedModel
from securebench.errors import FailureReason
from securebench.verifiers.base import Assurance, Status, VerificationResult


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    return value


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]
"""Whatever a model wrote, half a character included: that is for the verdict, not for us."""


class Completion(ClosedModel):
    """An answer; of a program what stands behind the code its task starts with."""

    completion: Text | None


class Solution(ClosedModel):
    """An answer; a whole program."""

    solution: Text | None


class Patch(ClosedModel):
    """A unified diff."""

    model_patch: Text | None


class Reply(ClosedModel):
    """What a model replied: a program or a patch is the one fenced block in it."""

    model_reply: Text | None


def _one_of(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """One sentence for all that a candidate is not."""
    try:
        return read(value)
    except ValidationError:
        message = "expected text, or an object with completion, solution, model_patch or model_reply, text or null"
        raise PydanticCustomError("candidate", message) from None


class GradeRequest(ClosedModel):
    """One candidate for one task of the pack. Plain text is a completion or, for a repository, a patch; null in an
    object says that nothing was produced."""

    task: str = Field(min_length=1, max_length=1000, examples=["HumanEval/0"])
    candidate: Annotated[Text | Completion | Solution | Patch | Reply, WrapValidator(_one_of)]


class BatchRequest(ClosedModel):
    """Many candidates; each is answered by a line with its number in this list."""

    items: tuple[GradeRequest, ...] = Field(min_length=1, strict=False)


class Details(ClosedModel):
    """What a record says besides, scrubbed of hidden values as there. Shown only where the operator said so."""

    message: str
    metadata: dict[str, Any]
    stdout: str
    stderr: str


class Verdict(ClosedModel):
    """The verdict on one candidate, whatever the candidate did."""

    task: str
    status: Literal["passed", "failed"]
    passed: bool
    score: float = Field(ge=0, le=1)
    assurance: Assurance | None
    failure_reason: FailureReason | None
    details: Details | None = None

    @classmethod
    def of(cls, result: VerificationResult, details: bool) -> Verdict:
        """The coarse fields of a result, and the others only where asked for."""
        metadata = dict(result.metadata)
        message = str(metadata.pop("message", ""))
        return cls(
            task=result.task_id,
            status="passed" if result.status is Status.PASSED else "failed",
            passed=result.passed,
            score=result.score,
            assurance=result.assurance,
            failure_reason=result.failure_reason,
            details=Details(message=message, metadata=metadata, stdout=result.stdout, stderr=result.stderr)
            if details
            else None,
        )


class ErrorBody(ClosedModel):
    """What went wrong, for programs and for people."""

    code: str
    message: str


class Problem(ClosedModel):
    """No verdict. Never the candidate's doing: what a candidate does is a verdict."""

    error: ErrorBody


class BatchLine(ClosedModel):
    """One line of the answer to a batch, in order of completion: a verdict, or why there is none."""

    index: int
    verdict: Verdict | None = None
    error: ErrorBody | None = None


class TaskInfo(ClosedModel):
    """A task of the pack: what kind of candidate it takes, nothing of what it asks."""

    id: str
    family: str
    candidate: str
    tags: tuple[str, ...] = Field(strict=False)


class TaskList(ClosedModel):
    """Every task of the pack, in its order."""

    benchmark: str
    pack_digest: str
    tasks: tuple[TaskInfo, ...] = Field(strict=False)


class State(ClosedModel):
    """How the server stands."""

    status: Literal["ok", "starting", "stopping", "failed"]
