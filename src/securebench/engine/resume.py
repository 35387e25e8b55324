"""Opening a run: a new one begins with its plan, an old one goes on where it stopped.

Nothing an earlier start left is believed before it was checked: the plan, the chain from it on, that every record has
the shape of one and is of the planned work, that no attempt is there twice, and that everything signed so far is about
these very bytes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securebench.engine.attempt_set import AttemptSet, Key
from securebench.engine.lanes import Todo
from securebench.errors import ConfigError, IntegrityError
from securebench.records._durable import read_file
from securebench.records.audits import load_audit, suite_digest
from securebench.records.dsse import MAX_ENVELOPE
from securebench.records.plan import PLAN_FILE, Plan, load_plan, rfc3339, write_plan
from securebench.records.plan_break import break_plan, plan_break
from securebench.records.seal import CHECKPOINTS_FILE, SEAL_FILE, Statement, open_statement
from securebench.records.seed import SEED_FILE, keep_seed, kept_seed
from securebench.records.shape import checked_record, without_long_texts
from securebench.records.store import RECORDS_FILE, RecordStore, read_lines
from securebench.records.summary import RunPlan, Tally


@dataclass(slots=True)
class Opened:
    """A run that can go on. `seed` is None once a seal has revealed it: then nothing is left to do."""

    plan: Plan  # the one in force now
    begun_with: str  # the digest of plan.json, from which the chain begins
    seed: bytes | None
    tally: Tally
    statuses: Counter[str] = field(default_factory=Counter)  # of all records in the file
    done: AttemptSet = field(default_factory=AttemptSet)
    faults: dict[Key, dict[str, Any]] = field(default_factory=dict)  # records `error` that nothing came after yet

    def missing(self, lost: Mapping[Key, int]) -> Iterator[Todo]:
        """Everything that has no record yet, first attempts of all tasks first. `lost` counts starts of agents that
        came to no record."""
        numbers = {task.id: number for number, task in enumerate(self.plan.tasks)}
        for task_id, attempt in self.plan.attempt_keys():
            if (task_id, attempt) not in self.done:
                yield Todo(numbers[task_id], attempt, lost.get((task_id, attempt), 0))


async def open_run(
    store: RecordStore, wanted: Plan, seed: bytes, *, now: float, resume: bool, anyway: bool = False
) -> Opened:
    """The run in the store's directory, new or continued. `anyway` goes on although the wanted plan is another one,
    and a line in the chain says so.

    Raises ConfigError where there is a run and none was to be continued, or where it is another one; IntegrityError
    where what is there cannot be right; StoreError."""
    directory = store.directory
    if not (directory / PLAN_FILE).exists():
        (directory / SEED_FILE).unlink(missing_ok=True)  # of an engine killed before its plan was there: nothing ran
        keep_seed(directory, seed)
        write_plan(directory, wanted)
        return _read(store, wanted, wanted.digest, seed)
    plan, digest = load_plan(directory)
    if not resume:
        raise ConfigError(
            f"{directory} already holds run {plan.run_id!r}; use --resume to continue it, or choose another "
            f"--output-dir.{f' Note: {store.repair}.' if store.repair else ''}"
        )
    if (audit := suite_digest(plan.audit)) is not None:
        load_audit(directory, audit)
    revealed = not (directory / SEED_FILE).exists() and (directory / SEAL_FILE).exists()
    opened = _read(store, plan, digest, None if revealed else kept_seed(directory, plan.seed_commitment))
    _check_signed(directory)
    kept: dict[str, Any] = {"seed_commitment": plan.seed_commitment}
    if wanted.executor is not None and opened.plan.executor is not None:
        kept["executor"] = opened.plan.executor
    wanted = wanted.model_copy(update=kept)
    if changed := opened.plan.differences(wanted):
        if not anyway or revealed:
            raise _another_run(directory, changed, revealed)
        await store.append(break_plan(directory, wanted, changed, rfc3339(now)))
        opened.plan, opened.tally.plan = wanted, RunPlan.of(wanted, directory)
        opened.done = AttemptSet(key for key in wanted.attempt_keys() if key in opened.done)
    return opened


def _another_run(directory: Path, changed: list[str], revealed: bool) -> ConfigError:
    listed = "\n".join(f"  {line}" for line in changed)
    way = "start a new run with another --output-dir"
    if not revealed:
        way += ", or go on with --resume-anyway, which records the break"
    return ConfigError(
        f"cannot resume {directory}: what decides its results changed since the run began:\n{listed}\n"
        f"undo the change, {way}"
    )


def _read(store: RecordStore, plan: Plan, digest: str, seed: bytes | None) -> Opened:
    store.begin(digest)
    opened = Opened(plan, digest, seed, Tally(RunPlan.of(plan, store.directory)))
    for number, record in enumerate(store.records(), 1):
        where = f"{store.path}:{number}"
        if (changed := plan_break(record, where)) is not None:
            opened.plan, seen = load_plan(store.directory, changed.plan)
            if seen != changed.digest:
                raise IntegrityError(f"{where}: {changed.plan} is not the plan it names")
            opened.tally.plan = RunPlan.of(opened.plan, store.directory)
        else:
            _add(opened, record, where)
    return opened


def _add(opened: Opened, record: dict[str, Any], where: str) -> None:
    earlier, plan = checked_record(record, where), opened.plan
    planned = plan.by_id.get(earlier.task_id)
    if planned is None or planned.task_type != earlier.task_type or earlier.attempt > plan.attempts_of(planned):
        raise IntegrityError(f"{where}: {earlier.name} is not part of this run")
    digests = earlier.digests
    if (earlier.run_id, digests.pack, digests.config) != (plan.run_id, plan.pack_digest, plan.config_digest):
        raise IntegrityError(f"{where}: is of another run, pack or configuration than the plan")
    opened.statuses[earlier.verification_status] += 1
    if earlier.key in opened.done:
        raise IntegrityError(f"{where}: {earlier.name} is recorded twice")
    if earlier.verification_status == "error":
        opened.faults[earlier.key] = without_long_texts(record)  # the host's, to be tried again
        return
    opened.faults.pop(earlier.key, None)
    opened.done.add(earlier.key)
    opened.tally.add(record)


def _check_signed(directory: Path) -> None:
    """Whatever was signed in an earlier start is about a beginning of the records. Raises IntegrityError."""
    wanted: dict[int, list[tuple[str, str]]] = {}
    for name, statement in _statements(directory):
        chain = statement.predicate.chain
        wanted.setdefault(chain.bytes, []).append((name, statement.subjects.get(RECORDS_FILE, "")))
    sha, size = hashlib.sha256(), 0
    for _, line in ((0, b""), *read_lines(directory / RECORDS_FILE)):
        sha.update(line)
        size += len(line)
        for name, expected in wanted.pop(size, ()):
            if expected != sha.hexdigest():
                raise IntegrityError(
                    f"{directory / RECORDS_FILE}: not what {name} was signed over; a record was changed"
                )
    if wanted:
        name = next(iter(wanted.values()))[0][0]
        raise IntegrityError(f"{directory / RECORDS_FILE}: has fewer or other lines than when {name} was signed")


def _statements(directory: Path) -> Iterator[tuple[str, Statement]]:
    seal, checkpoints = directory / SEAL_FILE, directory / CHECKPOINTS_FILE
    if seal.exists():
        yield SEAL_FILE, open_statement(read_file(seal, MAX_ENVELOPE), SEAL_FILE)
    if checkpoints.exists():
        for number, line in read_lines(checkpoints):
            if line.endswith(b"\n"):  # half a line was never acknowledged
                yield f"{CHECKPOINTS_FILE}:{number}", open_statement(line[:-1], f"{CHECKPOINTS_FILE}:{number}")
