"""The lines of `candidates.jsonl` against the plan: the chain, each record, and that every attempt is there once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from securebench import _json
from securebench._canonical import digest_bytes
from securebench.errors import IntegrityError, StoreError
from securebench.evidence.contents import ContentsCheck
from securebench.evidence.findings import Findings
from securebench.families.registry import FAMILIES
from securebench.records.audits import suite_digest
from securebench.records.nodes import voucher_problems
from securebench.records.plan import PLAN_FILE, Plan, load_plan
from securebench.records.plan_break import plan_break
from securebench.records.shape import RecordShape, checked_record, without_long_texts
from securebench.records.store import RECORDS_FILE, ChainState, read_lines
from securebench.records.summary import Tally

Listener = Callable[[int, dict[str, Any], Plan], None]
"""Told of every record that counts, once: its line, the record without long texts if it is an `error`, and the plan
that was in force."""


@dataclass(slots=True)
class Lines:
    """What the file holds."""

    plan: Plan  # the last one in force
    state: ChainState
    marks: dict[int, ChainState] = field(default_factory=dict)  # at the sizes that were asked for
    counts: Counter[str] = field(default_factory=Counter)  # of all lines by status
    assurance: Counter[str] = field(default_factory=Counter)  # of judged attempts
    superseded: int = 0
    missing: int = 0
    breaks: list[int] = field(default_factory=list)  # lines where the plan changed
    audits: Counter[str] = field(default_factory=Counter)  # signed audits that records name, "" for none


class LinesCheck:
    """Reads the file once. Everything that is off becomes a finding; it never stops at the first."""

    def __init__(
        self,
        directory: Path,
        plan: Plan,
        plan_digest: str,
        contents: ContentsCheck,
        tally: Tally,
        findings: Findings,
        on_record: Listener | None = None,
    ) -> None:
        self._directory = directory
        self._contents = contents
        self._tally = tally
        self._findings = findings
        self._on_record = on_record
        self._seen: dict[str, int] = {plan_digest: 0}  # digest of a line to its number
        self._head = plan_digest
        self._last: dict[tuple[str, int], int] = {}  # the line of an attempt's last record
        self._faults: dict[tuple[str, int], tuple[int, dict[str, Any], Plan]] = {}  # whose last record is an `error`
        self._number = 0
        self.lines = Lines(plan, ChainState(plan_digest, 0, 0, hashlib.sha256().hexdigest()))

    def run(self, marks: Iterable[int]) -> Lines:
        """`marks` are sizes of the file about which something was stated."""
        wanted, sha, size = frozenset(marks), hashlib.sha256(), 0
        try:
            for number, line in read_lines(self._directory / RECORDS_FILE):
                self._number = number
                self._line(line)
                self._head = digest_bytes(line)
                self._seen.setdefault(self._head, self._number)
                sha.update(line)
                size += len(line)
                if size in wanted:
                    self.lines.marks[size] = ChainState(self._head, self._number, size, sha.hexdigest())
        except StoreError as error:
            self._number = 0
            self._findings.raised(RECORDS_FILE, 0, error)
        self.lines.state = ChainState(self._head, self._number, size, sha.hexdigest())
        self._settle()
        return self.lines

    def _line(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            self._error(f"ends in {len(line)} bytes without a line end: an interrupted write, or a line cut short")
            return
        try:
            record = _json.loads(line)
            if not isinstance(record, dict):
                raise IntegrityError("not a record: expected an object")
            self._chain(record.get("previous"))
            changed = plan_break(record, RECORDS_FILE)
            if changed is not None:
                self._change_plan(changed.plan, changed.digest, changed.changed)
                return
            shape = checked_record(record, RECORDS_FILE)
        except _json.JsonError as error:
            self._error(str(error))
        except (IntegrityError, StoreError) as error:
            self._error(str(error).removeprefix(f"{RECORDS_FILE}: "))
        else:
            self._record(shape, record)

    def _chain(self, previous: Any) -> None:
        if previous == self._head:
            return
        before = f"line {self._number - 1}" if self._number > 1 else PLAN_FILE
        known = self._seen.get(previous) if isinstance(previous, str) else None
        if known is not None:
            follows = f"line {known}" if known else PLAN_FILE
            self._error(
                f"does not follow {before}: it was written behind {follows}; "
                "lines were inserted, repeated or moved, or this one was"
            )
        elif self._number == 1:
            self._error(
                f"does not follow {PLAN_FILE}: it was written behind {_short(previous)}, the plan is "
                f"{_short(self._head)}; the plan was changed, the record is of another run, or lines before it are gone"
            )
        else:
            self._error(
                f"does not follow {before}: it was written behind a line with the digest {_short(previous)}, "
                f"{before} has {_short(self._head)}; that line was changed or dropped, or this one put in"
            )

    def _change_plan(self, name: str, digest: str, changed: tuple[str, ...]) -> None:
        plan, seen = load_plan(self._directory, name)
        if seen != digest:
            self._error(
                f"changes the plan to {name} with the digest {_short(digest)}, but that file has {_short(seen)}"
            )
        if plan.run_id != self.lines.plan.run_id:
            self._error(f"changes the plan to one of run {plan.run_id!r}")
            return
        self.lines.plan = plan
        self.lines.breaks.append(self._number)
        self._note(f"the operator went on under another plan ({name}): {'; '.join(changed) or 'nothing named'}")

    def _record(self, shape: RecordShape, record: dict[str, Any]) -> None:
        for problem in _against_plan(shape, self.lines.plan):
            self._error(problem)
        for problem in self._contents.problems(shape):
            self._error(problem)
        self.lines.counts[shape.verification_status] += 1
        self._audit(shape)
        earlier = self._last.get(shape.key)
        if earlier is not None:
            if self._faults.pop(shape.key, None) is None:
                self._error(f"{shape.name} is recorded twice: also on line {earlier}")
                return
            self.lines.superseded += 1
            self._note(f"{shape.name} was tried again: on line {earlier} the host had failed")
        self._last[shape.key] = self._number
        if shape.verification_status == "error":
            self._faults[shape.key] = (self._number, without_long_texts(record), self.lines.plan)
        else:
            self._count(self._number, record, self.lines.plan)

    def _audit(self, shape: RecordShape) -> None:
        try:
            self.lines.audits[suite_digest(shape.audit) or ""] += 1
        except IntegrityError as error:
            self._error(str(error))

    def _count(self, number: int, record: dict[str, Any], plan: Plan) -> None:
        if record["passed"] is not None:
            self.lines.assurance[str(record["assurance"])] += 1
        self._tally.add(record)
        if self._on_record is not None:
            self._on_record(number, record, plan)

    def _settle(self) -> None:
        for number, record, plan in self._faults.values():
            self._count(number, record, plan)
        plan = self.lines.plan
        planned = {task.id: plan.attempts_of(task) for task in plan.tasks}
        # Counted, not listed: a plan can name more attempts than anybody could record.
        self.lines.missing = plan.total - sum(attempt <= planned.get(task, 0) for task, attempt in self._last)

    def missing_named(self) -> str:
        """The first attempts that have no record, in words."""
        missing = (key for key in self.lines.plan.attempt_keys() if key not in self._last)
        names = [f"{task!r} attempt {attempt}" for task, attempt in islice(missing, min(5, self.lines.missing))]
        more = self.lines.missing - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")

    def _error(self, message: str) -> None:
        self._findings.error(RECORDS_FILE, self._number, message)

    def _note(self, message: str) -> None:
        self._findings.note(RECORDS_FILE, self._number, message)


def _against_plan(record: RecordShape, plan: Plan) -> Iterable[str]:
    if record.run_id != plan.run_id:
        yield f"is a record of run {record.run_id!r}; this is run {plan.run_id!r}"
    task = plan.by_id.get(record.task_id)
    if task is None:
        yield f"task {record.task_id!r} is not in the plan"
        return
    if record.attempt > (planned := plan.attempts_of(task)):
        yield f"{record.name} is not in the plan, which has {planned} attempts of it"
    for what, seen, expected in (
        ("benchmark", record.benchmark_id, plan.benchmark.id),
        ("task type", record.task_type, task.task_type),
        ("row digest", record.digests.row, task.digest),
        ("pack digest", record.digests.pack, plan.pack_digest),
        ("configuration digest", record.digests.config, plan.config_digest),
        ("SecureBench", record.digests.securebench, plan.securebench),
    ):
        if seen != expected:
            yield f"{record.name}: {what} is {seen!r}, the plan says {expected!r}"
    given = plan.harness.get("samples")
    taken = record.producer_metadata.get("samples")
    if taken is not None and taken != (given.get("digest") if isinstance(given, dict) else None):
        yield f"{record.name}: its candidate is from the samples {taken!r}, which are not those of the plan"
    executed = task.task_type in FAMILIES and FAMILIES[task.task_type].executes
    for problem in voucher_problems(record, plan.executor, executed=executed):
        yield f"{record.name}: {problem}"
    if plan.unsafe and record.assurance not in {"unsafe", None}:
        yield f"{record.name}: claims assurance {record.assurance!r} in a run without the audit"


def _short(digest: Any) -> str:
    return digest[:19] + "…" if isinstance(digest, str) and digest.startswith("sha256:") else ascii(digest)[:80]
