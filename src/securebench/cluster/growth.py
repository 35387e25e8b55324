"""How much a cluster that can grow is asked for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import ceil


def processors(wanted: Mapping[str, float], missing: Collection[str], most: int | Mapping[str, int]) -> dict[str, int]:
    """Processors to ask for, by role: what is `wanted`, and one for each role of which nobody is there, `missing`, so
    that its first node is there when it is needed. `most` is for each role, and none of others; or for all together,
    but a role that is needed gets one."""
    needed = {role: ceil(round(cpus, 6)) for role, cpus in wanted.items()}
    needed |= {role: max(1, needed.get(role, 0)) for role in missing}
    needed = {role: cpus for role, cpus in needed.items() if cpus}
    if not isinstance(most, int):
        return {role: min(cpus, most[role]) for role, cpus in needed.items() if role in most}
    total = sum(needed.values())
    if total > most:
        return {role: max(1, cpus * most // total) for role, cpus in needed.items()}
    return needed
