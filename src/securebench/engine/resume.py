"""What an earlier start of the same run completed. Nothing in it is believed before it was checked.

Checked: the chain from the plan on, that every record has the shape of one, that it is of the planned work (pack, row,
configuration), that it was planned, and that no attempt is there twice. A change of the very last record cannot be
seen here; the seal shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from securebench.engine.lanes import Todo
from securebench.errors import IntegrityError
from securebench.records.plan import Plan
from securebench.records.shape import checked_record
from securebench.records.store import RecordStore
from securebench.records.summary import Tally


def finished_before(store: RecordStore, plan: Plan, tally: Tally, statuses: Counter[str]) -> set[tuple[str, int]]:
    """The attempts an earlier start completed, added to `tally`; `statuses` counts all of its records. Raises
    IntegrityError where they cannot be right."""
    done: set[tuple[str, int]] = set()
    for number, record in enumerate(store.records(), 1):
        where = f"{store.path}:{number}"
        earlier = checked_record(record, where)
        key = (earlier.task_id, earlier.attempt)
        planned = plan.by_id.get(earlier.task_id)
        if planned is None or planned.task_type != earlier.task_type or earlier.attempt > plan.attempts:
            raise IntegrityError(f"{where}: task {key[0]!r} attempt {key[1]} is not part of this run")
        digests = earlier.digests
        if (earlier.run_id, digests.pack, digests.config) != (plan.run_id, plan.pack_digest, plan.config_digest):
            raise IntegrityError(f"{where}: is of another run, pack or configuration than the plan")
        statuses[earlier.verification_status] += 1
        if earlier.verification_status == "error":
            continue
        if key in done:
            raise IntegrityError(f"{where}: task {key[0]!r} attempt {key[1]} is recorded twice")
        done.add(key)
        tally.add(record)
    return done


def missing(plan: Plan, done: set[tuple[str, int]], started: Mapping[tuple[str, int], int]) -> Iterator[Todo]:
    """Everything that has no record yet, first attempts of all tasks first. `started` counts how often agents were
    started before."""
    numbers = {task.id: number for number, task in enumerate(plan.tasks)}
    lost = Counter(started)
    for task_id, attempt in plan.attempt_keys():
        if (task_id, attempt) not in done:
            yield Todo(numbers[task_id], attempt, lost[task_id, attempt])
