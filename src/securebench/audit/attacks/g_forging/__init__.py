"""Class G: candidates that do not solve their task and forge the verdict from inside the process that is judged."""

from __future__ import annotations

from securebench.audit.attacks.g_forging import data, equals, exits, invented, patches, readers, wire
from securebench.audit.attacks.g_forging.rows import CLASS, THREATS

__all__ = ["ATTACKS", "CLASS", "THREATS"]

ATTACKS = (
    *exits.ATTACKS,
    *equals.ATTACKS,
    *patches.ATTACKS,
    *readers.ATTACKS,
    *data.ATTACKS,
    *wire.ATTACKS,
    *invented.ATTACKS,
)
