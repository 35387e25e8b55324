"""`audit_pack`: every attack on one pack, and the report of what came out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from securebench.audit.pack.reporting import make_report
from securebench.audit.pack.shares import load_with
from securebench.audit.pack.survey import Survey
from securebench.audit.report.model import Report
from securebench.benchmark_pack import find_pack

OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""
MUTANTS = 8
FLOOR = 0.7


async def audit_pack(
    path: Path,
    *,
    backend: str = "auto",
    workers: int | None = None,
    run: bool = True,
    mutants: int = MUTANTS,
    floor: float = FLOOR,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Report:
    """Audit the pack at `path`, a directory or its manifest. Without `run` no candidate is executed.

    At most `mutants` of a row's reference are tried, chosen by `seed`; `floor` is the share of them that tests must
    notice. Raises PackError for a pack that cannot be loaded, SandboxUnavailable where this host cannot run it."""
    began = time.monotonic()
    report = on_progress or _quiet
    report("reading rows", 0, 1)
    pack, survey = load_with(*find_pack(path), Survey)
    report("reading rows", 1, 1)
    notes = survey.notes()
    rows = f"{len(pack)} rows"
    looked = survey.looked()
    facts = {
        "pack": f"{pack.manifest.id} version {pack.manifest.version}",
        "digest": pack.digest,
        "rows": rows,
        "seconds": f"{time.monotonic() - began:.1f}",
    }
    return make_report(pack, notes, looked, facts)


def _quiet(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""
