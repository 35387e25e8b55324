"""What is read from the records themselves for a page: the details of every attempt, packed, and some in full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby, islice

from securebench.candidates.store import CandidateStore
from securebench.evidence.verify import CANDIDATES
from securebench.reports.content import Content, TaskLine
from securebench.reports.details import Bounds, Detail, detail_of
from securebench.reports.html.attempt import attempt, missing
from securebench.reports.html.blocks import Blocks, pack, packed_tasks
from securebench.reports.html.nodes import Node, node
from securebench.reports.html.run_view import Told
from securebench.reports.html.task_table import MOST_TASKS, index
from securebench.reports.record_file import RecordFile, open_records
from securebench.reports.rows import Row

SMALL = 300  # attempts of a run whose failures are told on the page itself
MOST_FAILURES = 25
_INLINE = Bounds(3000, 30, 60)
_MOST_ATTEMPTS = 20  # of one task


def told(content: Content, budget: int) -> Told:
    """Within a budget of bytes; with none at all, no details are told. Raises StoreError where the records cannot be
    read."""
    if not budget:
        return Told(pack(index(content.tasks)), Blocks(0, ()), (), 0)
    with ExitStack() as stack:
        records = stack.enter_context(open_records(content.run.directory)) if content.run.rows else None
        teller = _Teller(content, records, CandidateStore(content.run.directory / CANDIDATES))
        tasks = content.tasks[:MOST_TASKS]
        failed = [row for row in content.run.rows if row.status in {"failed", "error"}]
        small = len(content.run.rows) <= SMALL
        shown = failed[:MOST_FAILURES] if small else []
        return Told(
            pack(index(content.tasks)),
            packed_tasks(len(tasks), content.run.plan.attempts, teller.task, budget),
            tuple(
                (task, tuple(teller.one(row, _INLINE, unfold=False) for row in rows))
                for task, rows in groupby(shown, lambda row: row.task_id)
            ),
            len(failed) - len(shown),
        )


@dataclass(frozen=True, slots=True)
class _Teller:
    content: Content
    records: RecordFile | None
    store: CandidateStore

    def task(self, number: int, bounds: Bounds) -> list[Node]:
        """The pieces of one task."""
        return list(self._pieces(self.content.tasks[number], bounds))

    def _pieces(self, line: TaskLine, bounds: Bounds) -> Iterator[Node]:
        if line.task.tags:
            yield node("p", "soft stranger", f"{line.task.task_type} · {', '.join(line.task.tags)}")
        unfolded = next((row for row in line.rows if row.status != "passed"), next(iter(line.rows), None))
        for number, row in islice(enumerate(line.attempts, 1), _MOST_ATTEMPTS):
            yield missing(number) if row is None else self.one(row, bounds, unfold=row is unfolded)
        if (more := len(line.attempts) - _MOST_ATTEMPTS) > 0:
            yield node("p", "", node("strong", "cut", f" {more:,} further attempts left out here "))

    def one(self, row: Row, bounds: Bounds, *, unfold: bool) -> Node:
        return attempt(row, self._detail(row, bounds), unfold=unfold)

    def _detail(self, row: Row, bounds: Bounds) -> Detail | None:
        record = None if self.records is None else self.records.record(row.line)
        if record is None or (record.get("task_id"), record.get("attempt")) != row.key:
            return None  # the file was changed since it was checked
        return detail_of(record, self.store, bounds)
