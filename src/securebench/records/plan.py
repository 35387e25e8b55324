"""`plan.json`: what must run, decided, written and synced before anything runs.

The file is canonical JSON (RFC 8785), so its digest is both that of its bytes and that of what it says. The chain of
records begins with that digest: records of one plan can never be passed off as records of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints, ValidationError, model_validator

from securebench import _json
from securebench._canonical import canonical_bytes, digest_bytes
from securebench._schema import ClosedModel
from securebench.errors import ConfigError, IntegrityError, StoreError
from securebench.records._durable import create_file, read_file

PLAN_FILE = "plan.json"
PLAN_VERSION: Literal[1] = 1
MAX_PLAN = 512 * 2**20
MAX_TASKS = 2_000_000
MAX_ATTEMPTS = 10_000_000

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Short = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Timestamp = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Details = Annotated[Mapping[str, JsonValue], Field(max_length=1000)]


class PlannedTask(ClosedModel):
    """One task of the pack that must run: its id, type, and the digest of its row with the row's files. How often it
    is attempted stands there only where it is not as often as the others."""

    id: Short
    task_type: Short
    digest: Short
    image: Short | None = None
    tags: Annotated[tuple[Short, ...], Field(max_length=1000)] = ()
    attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] | None = None


class BenchmarkName(ClosedModel):
    id: Short
    version: Short


class Filters(ClosedModel):
    """What the operator left out of the pack. False where the whole pack runs."""

    limit: Annotated[int, Field(ge=0)] | None = None
    tasks: Annotated[tuple[Short, ...], Field(max_length=MAX_TASKS)] = ()
    tags: Annotated[tuple[Short, ...], Field(max_length=10_000)] = ()
    sampled: bool = False  # only tasks that have a sample

    def __bool__(self) -> bool:
        return self != Filters()

    def as_json(self) -> dict[str, Any]:
        """What is not used does not stand there, as in plans that were made before it could be."""
        return self.model_dump(mode="json", exclude=None if self.sampled else {"sampled"})


class Plan(ClosedModel):
    """Everything that is decided before a run. Raises ValueError for what contradicts itself."""

    plan_version: Literal[1] = PLAN_VERSION
    run_id: RunId
    created_at: Timestamp
    benchmark: BenchmarkName
    pack_digest: Digest
    tasks: Annotated[tuple[PlannedTask, ...], Field(max_length=MAX_TASKS)]
    attempts: Annotated[int, Field(ge=1, le=1000)]
    filters: Filters = Field(default_factory=Filters)
    pack_tasks: Annotated[int, Field(ge=0)] | None = None  # how many the pack has, filtered or not
    harness: Details
    images: Annotated[Mapping[Short, Short], Field(max_length=100_000)] = Field(default_factory=dict)
    limits: Details = Field(default_factory=dict)
    config_digest: Digest
    prompt_digest: Digest | None = None
    securebench: Short
    seed_commitment: Hex32
    audit: Details | None = None
    unsafe: bool = False
    host: Details = Field(default_factory=dict)
    executor: Details | None = None  # the cluster that carries attempts out, and the key that enrols its nodes

    @model_validator(mode="after")
    def _each_task_once(self) -> Plan:
        if len(self.by_id) != len(self.tasks):
            raise ValueError("a task is planned twice")
        return self

    @cached_property
    def by_id(self) -> Mapping[str, PlannedTask]:
        return {task.id: task for task in self.tasks}

    @cached_property
    def digest(self) -> str:
        """Of the exact bytes of `plan.json`, and so of everything planned."""
        return digest_bytes(self.encode())

    @property
    def total(self) -> int:
        """How many attempts must run."""
        return sum(map(self.attempts_of, self.tasks))

    def attempts_of(self, task: PlannedTask) -> int:
        """How many attempts at this task must run."""
        return self.attempts if task.attempts is None else task.attempts

    def attempt_keys(self) -> Iterator[tuple[str, int]]:
        """Task id and attempt of everything that must run, first attempts of all tasks first."""
        left: Sequence[PlannedTask] = self.tasks
        for attempt in count(1):
            for task in left:
                yield task.id, attempt
            left = [task for task in left if self.attempts_of(task) > attempt]
            if not left:
                return

    def encode(self) -> bytes:
        """The bytes of `plan.json`. Raises ConfigError for a value that has no canonical form."""
        try:
            details = (self.harness, self.limits, self.audit, self.host, self.executor)
            if any(_too_large(value) for value in details):
                raise ValueError("a number beyond 2**53")
            return canonical_bytes(self._plain())
        except ValueError as error:
            raise ConfigError(f"{PLAN_FILE} cannot be written: {error}") from error

    def _plain(self) -> dict[str, Any]:
        """What is not used does not stand there, as in plans that were made before it could be."""
        value = self.model_dump(mode="json") | {"filters": self.filters.as_json()}
        for task in value["tasks"]:
            if task["attempts"] is None:
                del task["attempts"]
        if self.executor is None:
            del value["executor"]
        return value

    def differences(self, other: Plan) -> list[str]:
        """What `other` decides otherwise, one line each; nothing where it is the same work under the same terms.

        When, under which seed and on which host does not count: a run may be continued later and elsewhere."""
        before, after = (_compared(plan) for plan in (self, other))
        lines = [_change(name, before[name], after[name]) for name in before if before[name] != after[name]]
        return [*lines, *_task_changes(self, other)]


def _too_large(value: Any) -> bool:
    """Whether there is a number in it that is written without a point and then read as an integer out of range."""
    if isinstance(value, Mapping):
        return any(map(_too_large, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_too_large, value))
    return isinstance(value, float) and abs(value) >= 2**53


def _compared(plan: Plan) -> dict[str, Any]:
    value = plan.model_dump(mode="json", exclude=_NOT_COMPARED) | {"filters": plan.filters.as_json()}
    return value | {"executor": "local" if plan.executor is None else plan.executor.get("type")}


_NOT_COMPARED = {"created_at", "seed_commitment", "host", "audit", "tasks"}


def _change(name: str, before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        return "; ".join(f"{name}.{key}: {_shown(before.get(key))} → {_shown(after.get(key))}" for key in keys)
    return f"{name}: {_shown(before)} → {_shown(after)}"


def _shown(value: Any) -> str:
    text = _json.dumps(value)
    return text if len(text) <= 200 else text[:199] + "…"


def _task_changes(before: Plan, after: Plan) -> Iterator[str]:
    groups = {
        "no longer planned": [id_ for id_ in before.by_id if id_ not in after.by_id],
        "newly planned": [id_ for id_ in after.by_id if id_ not in before.by_id],
        "changed": [id_ for id_, task in after.by_id.items() if before.by_id.get(id_, task) != task],
    }
    for what, ids in groups.items():
        if ids:
            names = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
            yield f"tasks {what}: {names}"


def decode_plan(data: bytes, name: str = PLAN_FILE) -> Plan:
    """The plan these bytes say. Raises IntegrityError with what is wrong."""
    try:
        value = _json.loads(data)
        plan = Plan.model_validate_json(_json.dumps(value))
    except _json.JsonError as error:
        raise IntegrityError(f"{name}: {error}") from error
    except ValidationError as error:
        raise IntegrityError(f"{name}: not a plan of ours: {'; '.join(wrong_fields(error))}") from None
    except RecursionError:
        raise IntegrityError(f"{name}: nested too deeply") from None
    try:
        canonical = canonical_bytes(value) == data
    except ValueError:
        canonical = False
    if not canonical or plan.encode() != data:
        raise IntegrityError(f"{name}: not in the canonical form it was written in; it was rewritten since")
    return plan


def wrong_fields(error: ValidationError) -> list[str]:
    """`field: what is wrong` for the first problems of a model, without repeating values."""
    details = error.errors(include_input=False, include_url=False, include_context=False)
    return [f"{'.'.join(map(str, detail['loc'])) or 'it'}: {detail['msg']}" for detail in details[:5]]


def write_plan(directory: Path, plan: Plan) -> None:
    """Write and sync `plan.json`. Raises StoreError, also when there is one: a plan is never replaced."""
    path = directory / PLAN_FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        create_file(path, plan.encode())
    except FileExistsError:
        raise StoreError(f"{path}: there is a plan already") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def load_plan(directory: Path, name: str = PLAN_FILE) -> tuple[Plan, str]:
    """The plan of a run and the digest of its bytes. Raises IntegrityError, also when there is none; StoreError."""
    path = directory / name
    try:
        data = read_file(path, MAX_PLAN)
    except FileNotFoundError:
        raise IntegrityError(f"{path}: there is no plan") from None
    return decode_plan(data, str(path)), digest_bytes(data)


def rfc3339(seconds: float) -> str:
    """A time since the epoch as it stands in plans and seals."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
