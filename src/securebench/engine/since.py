"""What differs between the making of a run and now, as far as it decides verdicts: for the whole run, and for one
attempt whose verdict is another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from securebench.benchmark_pack import BenchmarkPack, RowIndex
from securebench.engine.stored_run import SeedOrigin
from securebench.records.plan import Plan
from securebench.records.record import securebench_digest
from securebench.records.shape import RecordShape

_NAMED = 10


@dataclass(frozen=True, slots=True)
class Since:
    """`config` is the digest of the tester file in use now, None where none was given."""

    plan: Plan
    pack: BenchmarkPack
    seed: SeedOrigin
    config: str | None = None
    images: Mapping[str, str] | None = None  # reference → digest, of those that are used now

    def lines(self) -> Iterator[str]:
        """Everything that differs, the pack first."""
        yield from self._pack()
        if self.plan.securebench != (now := securebench_digest()):
            yield f"SecureBench is another one: {self.plan.securebench} → {now}"
        if self.config is None:
            yield "no tester file was given: the default verification policy holds, and no model judges"
        elif self.config != self.plan.config_digest:
            yield f"the tester file decides otherwise: {self.plan.config_digest} → {self.config}"
        for name, before, after in self._images():
            yield f"image {name} is another one: {before} → {after}"
        if self.seed is SeedOrigin.FRESH:
            yield "the run's seed is neither revealed nor kept: generated cases, orders and twins are others than then"

    def causes(self, record: RecordShape, entry: RowIndex) -> Iterator[str]:
        """What of that can have made this attempt's verdict another one."""
        if record.verification_status == "error":
            yield "the host or the pack had failed then"
        if record.digests.pack != self.pack.digest:
            yield "the pack changed: this row, one of its files, or something else in it"
        if record.digests.securebench != securebench_digest():
            yield "SecureBench changed"
        if self.config is not None and record.digests.config != self.config:
            yield "the tester file changed"
        if any(name == entry.image for name, _, _ in self._images()):
            yield "the image changed"
        if self.seed is SeedOrigin.FRESH:
            yield "the seed is another one"

    def _pack(self) -> Iterator[str]:
        plan, pack = self.plan, self.pack
        if plan.pack_digest == pack.digest:
            return
        yield f"the pack is another one: {plan.pack_digest} → {pack.digest}"
        if plan.benchmark.id != pack.manifest.id:
            yield f"its id is {pack.manifest.id!r}; the run was of {plan.benchmark.id!r}"
        ids = set(pack.ids)
        if gone := [task.id for task in plan.tasks if task.id not in ids]:
            yield f"{len(gone)} rows are gone: {_named(gone)}"

    def _images(self) -> Iterator[tuple[str, str, str]]:
        for name, now in sorted((self.images or {}).items()):
            before = self.plan.images.get(name)
            if before is not None and before != now:
                yield name, before, now


def _named(ids: Sequence[str]) -> str:
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")
