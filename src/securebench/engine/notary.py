"""Who signs for a run: checkpoints while it goes on, the seal at its end."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from securebench.errors import StoreError
from securebench.records.keys import SigningKey
from securebench.records.nodes import forget_enrolment
from securebench.records.plan import Plan, rfc3339
from securebench.records.seal import Progress, checkpoint, keep_earlier_seal, seal_run
from securebench.records.seed import forget_seed
from securebench.records.store import RecordStore

CHECKPOINT_SECONDS = 120.0


@dataclass(slots=True)
class Notary:
    """`counts` are the records by status as they stand in the file, earlier starts included."""

    key: SigningKey
    plan: Plan
    begun_with: str  # the digest of plan.json
    store: RecordStore
    seed: bytes
    counts: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.time)

    def begin(self) -> None:
        """Before records are added: the seal of an earlier start is about the records as they were."""
        keep_earlier_seal(self.store.directory)

    async def checkpoints(self) -> None:
        """Sign what is there every few minutes, so that also a killed run is provable up to there."""
        before = self.store.count
        while True:
            await anyio.sleep(CHECKPOINT_SECONDS)
            if self.store.count != before:
                before = self.store.count
                with suppress(StoreError):  # a full disk; writing records will say so
                    checkpoint(self.store.directory, self._progress(), self.key)

    def seal(self, *, complete: bool) -> None:
        """After `summary.json`. A complete run reveals its seed. Raises StoreError."""
        seal_run(self.store.directory, self._progress(), "complete" if complete else "interrupted", self.key)
        if complete:
            forget_seed(self.store.directory)
            forget_enrolment(self.store.directory)

    def _progress(self) -> Progress:
        return Progress(
            run_id=self.plan.run_id,
            plan_digest=self.begun_with,
            chain=self.store.state,
            counts=self.counts,
            seed=self.seed,
            started_at=rfc3339(self.started),
            finished_at=rfc3339(time.time()),
            securebench=self.plan.securebench,
        )
