"""What one sandbox uses and whether it crossed a limit: from its control group, or sampled where there is none."""

from __future__ import annotations

from dataclasses import dataclass

from securebench.sandboxes._bubblewrap.cgroups import Counters, Group
from securebench.sandboxes._bubblewrap.processes import sample
from securebench.sandboxes.base import Limits, Outcome


@dataclass(slots=True)
class Meter:
    """Reads a group, or the processes beneath `roots`. Counts from where the command began."""

    limits: Limits
    group: Group | None
    roots: list[int]
    before: Counters = Counters(cpu_seconds=0.0)  # noqa: RUF009  (frozen)

    def begin(self) -> None:
        """Remember what earlier commands of the same sandbox used."""
        if self.group is not None:
            self.before = self.group.counters()

    def begin_anew(self) -> bool:
        """As `begin`, in a group that others have used before; whether the peak of memory is this command's own."""
        self.begin()
        return self.group is not None and self.group.begin_anew()

    @property
    def needed(self) -> bool:
        """Whether anything has to be sampled while the command runs."""
        return self.group is None or self.limits.cpu_seconds is not None

    def over(self) -> Outcome | None:
        """The limit that is crossed now, as far as we have to enforce it ourselves."""
        limit = self.limits.cpu_seconds
        if self.group is not None:
            used = self.used().cpu_seconds
            return Outcome.CPU_LIMIT if limit is not None and used is not None and used >= limit else None
        seen = sample(self.roots)
        if limit is not None and seen.cpu_seconds >= limit:
            return Outcome.CPU_LIMIT
        return Outcome.OUT_OF_MEMORY if seen.resident > self.limits.memory else None

    def used(self) -> Counters:
        """What the command used, as far as a control group counted it."""
        if self.group is None:
            return Counters()
        now, before = self.group.counters(), self.before
        cpu = None
        if now.cpu_seconds is not None and before.cpu_seconds is not None:
            cpu = now.cpu_seconds - before.cpu_seconds
        kills, at_limit = now.oom_kills - before.oom_kills, now.at_limit - before.at_limit
        return Counters(cpu, now.peak_memory, now.peak_pids, kills, at_limit)
