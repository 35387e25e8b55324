"""The fields of a record that decide anything, checked before they are believed: types, ranges, and that no two of
them contradict each other."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from securebench import _json
from securebench.errors import IntegrityError

_Attempt = Annotated[int, Field(ge=1)]


class _Open(BaseModel):
    """Strict in what it reads; a record has more fields than decide."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class Digests(_Open):
    """What the attempt was made of."""

    pack: str
    config: str
    row: str
    securebench: str
    candidate: str | None = None


class Kept(_Open):
    """A file of evidence by digest and size."""

    digest: str
    size: Annotated[int, Field(ge=0)]


class RecordShape(_Open):
    """One record. `contradiction` says what in it cannot be true."""

    record_version: Literal[1]
    run_id: str
    task_id: str
    attempt: _Attempt
    benchmark_id: str
    task_type: str
    verification_status: Literal["passed", "failed", "pending", "error"]
    passed: bool | None
    score: Annotated[float, Field(ge=0, le=1)] | None
    failure_reason: str | None
    assurance: str | None
    candidate_text: str | None
    candidate_patch: str | None
    candidate_workspace: str | None
    producer_metadata: dict[str, Any]
    evidence: dict[str, Kept]
    digests: Digests
    previous: str
    audit: dict[str, Any] | None = None
    nodes: dict[str, Any] | None = None  # who produced and judged it, where that were other machines

    @property
    def key(self) -> tuple[str, int]:
        return self.task_id, self.attempt

    @property
    def name(self) -> str:
        return f"task {self.task_id!r} attempt {self.attempt}"

    def contradiction(self) -> str | None:
        """What in it cannot be true."""
        judged = self.verification_status in {"passed", "failed"}
        if judged != (self.passed is not None) or judged != (self.score is not None):
            return "has a verdict without a status, or a status without a verdict"
        if judged and self.passed != (self.verification_status == "passed"):
            return "says passed and not passed"
        if self.verification_status == "failed" and self.failure_reason is None:
            return "failed without a reason"
        return None


LONG = 1000


def without_long_texts(record: dict[str, Any]) -> dict[str, Any]:
    """A record as small as it can be kept until it is known whether it counts; no summary counts a long text."""
    return {key: value for key, value in record.items() if not isinstance(value, str) or len(value) <= LONG}


def checked_record(record: dict[str, Any], where: str) -> RecordShape:
    """A record whose deciding fields are sound. Raises IntegrityError that begins with `where`."""
    try:
        shape = RecordShape.model_validate_json(_json.dumps(record))
    except ValidationError as error:
        fields = sorted({".".join(map(str, detail["loc"])) for detail in error.errors(include_input=False)})
        raise IntegrityError(f"{where}: not a record of ours; wrong or missing: {', '.join(fields)}") from None
    if problem := shape.contradiction():
        raise IntegrityError(f"{where}: {problem}")
    return shape
