"""What an earlier start of the same run completed. Nothing in it is believed before it was checked.

Checked: the chain, that every record has the shape of one, that it belongs to this run (id, pack, configuration),
that it was planned, and that no attempt is there twice. A change of the very last record cannot be seen here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from securebench import _json
from securebench.errors import ConfigError, IntegrityError
from securebench.records.record import Identity
from securebench.records.store import RecordStore
from securebench.records.summary import Tally


class _Digests(BaseModel):
    model_config = ConfigDict(strict=True)

    pack: str
    config: str


class EarlierRecord(BaseModel):
    """The fields of an old record that decide anything."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    run_id: str
    task_id: str
    attempt: Annotated[int, Field(ge=1)]
    task_type: str
    verification_status: Literal["passed", "failed", "pending", "error"]
    passed: bool | None
    score: Annotated[float, Field(ge=0, le=1)] | None
    failure_reason: str | None
    assurance: str | None
    digests: _Digests

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


def finished_before(
    store: RecordStore, identity: Identity, planned: dict[str, str], attempts: int, resume: bool, tally: Tally
) -> set[tuple[str, int]]:
    """The attempts an earlier start completed, added to `tally`. `planned` maps task ids to their types.

    Raises ConfigError where the run is another one or resuming was not asked for, IntegrityError where the records
    cannot be right."""
    done: set[tuple[str, int]] = set()
    for number, record in enumerate(store.records(), 1):
        if not resume:
            repaired = f" Note: {store.repair}." if store.repair else ""
            raise ConfigError(
                f"{store.directory} already holds records of run {str(record.get('run_id'))[:100]!r}; "
                f"use --resume to continue it, or choose another --output-dir.{repaired}"
            )
        where = f"{store.path}:{number}"
        earlier = _checked(record, where)
        _check_same_run(earlier, identity, store)
        key = (earlier.task_id, earlier.attempt)
        if planned.get(earlier.task_id) != earlier.task_type or earlier.attempt > attempts:
            raise IntegrityError(f"{where}: task {key[0]!r} attempt {key[1]} is not part of this run")
        if earlier.verification_status == "error":
            continue
        if key in done:
            raise IntegrityError(f"{where}: task {key[0]!r} attempt {key[1]} is recorded twice")
        done.add(key)
        tally.add(record)
    return done


def _checked(record: dict[str, Any], where: str) -> EarlierRecord:
    try:
        earlier = EarlierRecord.model_validate_json(_json.dumps(record))
    except ValidationError as error:
        fields = sorted({".".join(map(str, detail["loc"])) for detail in error.errors(include_input=False)})
        raise IntegrityError(f"{where}: not a record of ours; wrong or missing: {', '.join(fields)}") from None
    if problem := earlier.contradiction():
        raise IntegrityError(f"{where}: {problem}")
    return earlier


def _check_same_run(record: EarlierRecord, identity: Identity, store: RecordStore) -> None:
    for what, before, now in (
        ("run.id", record.run_id, identity.run_id),
        ("the pack", record.digests.pack, identity.pack_digest),
        ("the harness, limits or attempts", record.digests.config, identity.config_digest),
    ):
        if before != now:
            raise ConfigError(
                f"cannot resume {store.directory}: {what} changed since the run began ({before} → {now}); "
                "undo the change or start a new run with another --output-dir"
            )
