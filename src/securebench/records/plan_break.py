"""A change of plan in the middle of a run, for which the operator asked (`--resume-anyway`): a line of its own in
the chain that names the plan in force from there on. What was recorded before stays what it was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from securebench import _json
from securebench._schema import ClosedModel
from securebench.errors import IntegrityError, StoreError
from securebench.records._durable import create_file
from securebench.records.plan import Digest, Plan, Short, Timestamp

BREAK = "plan_break"
_Change = Annotated[str, StringConstraints(max_length=10_000)]


class PlanBreak(ClosedModel):
    """Which plan holds from this line on, and what in it is other than before."""

    plan: Annotated[str, StringConstraints(pattern=r"^plan-[1-9][0-9]{0,5}\.json$")]
    digest: Digest
    changed: Annotated[tuple[_Change, ...], Field(max_length=100)]
    at: Timestamp


class _Line(ClosedModel):
    record_version: int
    run_id: Short
    plan_break: PlanBreak
    previous: str = ""


def break_plan(directory: Path, plan: Plan, changed: Sequence[str], at: str) -> dict[str, Any]:
    """Write a further plan beside the first; the line to append to the records before anything runs under it.
    Raises StoreError."""
    for number in count(2):
        name = f"plan-{number}.json"
        try:
            create_file(directory / name, plan.encode())
        except FileExistsError:
            continue
        except OSError as error:
            raise StoreError(f"{directory / name}: cannot be written: {error.strerror}") from error
        lines = tuple(line[:10_000] for line in changed[:100])
        value = PlanBreak(plan=name, digest=plan.digest, changed=lines, at=at)
        return {"record_version": 1, "run_id": plan.run_id, BREAK: value.model_dump(mode="json")}
    raise AssertionError  # `count` does not end


def plan_break(record: dict[str, Any], where: str) -> PlanBreak | None:
    """What a line says of a change of plan; None for the record of an attempt. Raises IntegrityError."""
    if BREAK not in record:
        return None
    try:
        return _Line.model_validate_json(_json.dumps(record)).plan_break
    except ValidationError:
        raise IntegrityError(f"{where}: not a change of plan as we write it") from None
