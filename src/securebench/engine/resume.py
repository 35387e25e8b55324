"""What an earlier start of the same run completed. Nothing in it is believed before it was checked.

Checked: the chain, that every record has the shape of one, that it belongs to this run (id, pack, configuration),
that it was planned, and that no attempt is there twice. A change of the very last record cannot be seen here."""

from __future__ import annotations

from securebench.errors import ConfigError, IntegrityError
from securebench.records.record import Identity
from securebench.records.shape import RecordShape, checked_record
from securebench.records.store import RecordStore
from securebench.records.summary import Tally


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
        earlier = checked_record(record, where)
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


def _check_same_run(record: RecordShape, identity: Identity, store: RecordStore) -> None:
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
