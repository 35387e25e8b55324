"""How much a cluster that can grow is asked for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import ceil


def processors(wanted: Mapping[str, float], missing: Collection[str], most: int) -> dict[str, int]:
    """Processors to ask for, by role: what is `wanted`, and one for each role of which nobody is there, `missing`, so
    that its first node is there when it is needed. All together are `most`, but a role that is needed gets one."""
    needed = {role: ceil(round(cpus, 6)) for role, cpus in wanted.items()}
    needed |= {role: max(1, needed.get(role, 0)) for role in missing}
    total = sum(needed.values())
    if total > most:
        needed = {role: max(1, cpus * most // total) for role, cpus in needed.items() if cpus}
    return {role: cpus for role, cpus in needed.items() if cpus}
