"""What formats of whole attempts are made of: the row, and from its record what was judged, what was asked, and the
trajectory. Only public fields of a task are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from securebench import _json
from securebench.candidates.extraction import MAX_PATCH_BYTES
from securebench.candidates.store import CandidateStore
from securebench.errors import FailureReason, IntegrityError
from securebench.evidence.verify import CANDIDATES
from securebench.harnesses.sample_layouts.base import MAX_LINE
from securebench.records.store import RECORDS_FILE
from securebench.reports._values import listed, mapping, text
from securebench.reports.details import TRAJECTORY
from securebench.reports.record_file import open_records
from securebench.reports.rows import Row
from securebench.reports.runs import Run
from securebench.resources import Visibility

MAX_TRAJECTORY = 32 * 2**20
PATCHES = "repo_patch"
"""The family whose candidates are patches."""
_AROUND = 4096  # bytes of a sample beside its patch
_LATEST = 2**35  # seconds; a stranger's clock may say anything
_ASKED = ("question", "prompt", "instructions")
_UNFINISHED = frozenset(
    {
        FailureReason.PRODUCER_TIMEOUT,
        FailureReason.PRODUCER_FAILED,
        FailureReason.PRODUCER_OUTPUT_LIMIT,
        FailureReason.PRODUCER_MEMORY_LIMIT,
        FailureReason.BUDGET_EXHAUSTED,
    }
)
"""Attempts that failed whatever they left behind: to others that would look like a candidate."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One recorded attempt with its record, whoever wrote that."""

    row: Row
    record: Mapping[str, Any]
    store: CandidateStore

    @property
    def patch(self) -> str | None:
        """The patch that was judged."""
        return self._judged("candidate_patch")

    @property
    def lacks(self) -> str | None:
        """Why its patch, written elsewhere, is not what was judged; None where it is."""
        if self.patch is None:
            return None
        capture = mapping(mapping(mapping(self.record.get("producer_metadata")).get("candidate")).get("capture"))
        if missing := len(listed(capture.get("not_rendered"))):
            return f"its patch is not whole: files that are too large are not in it ({missing})"
        if len(self.patch.encode("utf-8", "surrogatepass")) > MAX_PATCH_BYTES or _written(self.patch) > MAX_LINE:
            return "its patch is longer than a sample may be"
        return None

    @property
    def text(self) -> str | None:
        """The answer or program that was judged."""
        return self._judged("candidate_text")

    @property
    def is_code(self) -> bool:
        return self.row.family == "code_completion"

    @property
    def public(self) -> dict[str, Any]:
        """The task's public fields, by name."""
        return {
            name: field.get("value")
            for name, field in mapping(self.record.get("resource_summary")).items()
            if mapping(field).get("visibility") == Visibility.PUBLIC
        }

    @property
    def question(self) -> str:
        """What the task asks, as far as its public fields say so."""
        fields = self.public
        asked = next((fields[name] for name in _ASKED if isinstance(fields.get(name), str)), None)
        return asked if asked is not None else _json.dumps(fields)

    @property
    def choices(self) -> list[str]:
        field = mapping(mapping(self.record.get("resource_summary")).get("choices"))
        found = listed(field.get("value")) if field.get("visibility") == Visibility.PUBLIC else []
        return found if all(isinstance(one, str) for one in found) else []

    @property
    def harness(self) -> str:
        return text(mapping(self.record.get("producer_metadata")).get("harness"), 200)

    def trajectory(self) -> dict[str, Any] | None:
        """The stored one, with the attempt it is of; None where none was kept. Raises IntegrityError."""
        digest = mapping(mapping(self.record.get("evidence")).get(TRAJECTORY)).get("digest")
        if not isinstance(digest, str):
            return None
        try:
            document = _json.loads(self.store.read(digest, MAX_TRAJECTORY))
        except ValueError as error:
            raise IntegrityError(f"the trajectory of {self.row.name[:200]!r} cannot be read: {error}") from error
        steps = document.get("steps") if isinstance(document, dict) else None
        if not isinstance(document, dict) or not isinstance(steps, list):
            raise IntegrityError(f"the trajectory of {self.row.name[:200]!r} is none")
        numbered = [{**step, "step_id": n} for n, step in enumerate(steps, 1) if isinstance(step, dict)]
        mark = {"task_id": self.row.task_id, "attempt": self.row.attempt, "status": self.row.status}
        extra = {**mapping(document.get("extra")), "securebench": {**mark, "score": self.row.score}}
        return {**document, "steps": numbered, "extra": extra}

    def times(self) -> tuple[str | None, str | None, str | None]:
        """When it began, when the agent had ended, when the verifier had."""
        start = self.row.started_at
        produced = None if start is None else start + (self.row.produce_seconds or 0.0)
        verified = None if produced is None else produced + (self.row.verify_seconds or 0.0)
        return moment(start), moment(produced), moment(verified)

    def _judged(self, field: str) -> str | None:
        value = None if self.row.failure_reason in _UNFINISHED else self.record.get(field)
        return value if isinstance(value, str) else None


def attempts_of(run: Run, wanted: Callable[[Row], bool] = lambda _: True) -> Iterator[Attempt]:
    """Those that are wanted, in the plan's order. Raises StoreError, and IntegrityError where records changed since
    they were checked."""
    if not run.rows:
        return
    store = CandidateStore(run.directory / CANDIDATES)
    with ExitStack() as stack:
        records = stack.enter_context(open_records(run.directory))
        for row in filter(wanted, run.rows):
            record = records.record(row.line)
            if record is None or (record.get("task_id"), record.get("attempt")) != row.key:
                raise IntegrityError(f"{run.directory / RECORDS_FILE}:{row.line}: changed since it was checked")
            yield Attempt(row, record, store)


def lacking(run: Run, attempt: int | None = None) -> Iterator[str]:
    """What to say of attempts, or of these at every task, whose patch cannot be given on as it was judged."""
    for one in attempts_of(run, lambda row: row.family == PATCHES and attempt in (None, row.attempt)):
        if (why := one.lacks) is not None:
            yield f"{one.row.name[:200]}: {why}"


def _written(patch: str) -> int:
    """Bytes of a sample with this patch, as exports write it."""
    return len(_json.dumps_ascii(patch)) + _AROUND


def moment(seconds: float | None) -> str | None:
    """Seconds since the epoch as others write them."""
    return None if seconds is None or seconds >= _LATEST else datetime.fromtimestamp(seconds, UTC).isoformat()


def file_name(task_id: str, attempt: int) -> str:
    """A name for an attempt's file or directory that is harmless and nobody else's, whatever the task is called."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", task_id).strip("._-")[:80].lower()
    return f"{plain or 'task'}{'' if plain == task_id else '-' + _short(task_id)}__{attempt}"


def _short(task_id: str) -> str:
    return sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def model_of(run: Run) -> str:
    """The one model that records name; else who answered."""
    named = sorted({row.model for row in run.rows if row.model})
    return named[0] if len(named) == 1 else text(run.plan.harness.get("type"), 200) or "unknown"
