"""`audit_pack`: every attack on one pack, and the report of what came out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from securebench.audit.pack.entrants import Entrants
from securebench.audit.pack.outcomes import looked_at, outcome_notes
from securebench.audit.pack.reporting import make_report, over
from securebench.audit.pack.shares import load_with
from securebench.audit.pack.sight import is_seen, look_at_pack
from securebench.audit.pack.survey import Survey
from securebench.audit.pack.trials import runs_code, try_pack
from securebench.audit.pack.twin import compare_with_twins
from securebench.audit.report.model import Report
from securebench.benchmark_pack import BenchmarkPack, find_pack
from securebench.engine.preflight import task_roots
from securebench.families.registry import FAMILIES
from securebench.sandboxes.base import ISOLATED, Sandbox
from securebench.sandboxes.select import select_sandbox

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
    notes, looked = survey.notes(), survey.looked()
    here = sorted({entry.family for entry in pack.entries})
    code = [family for family in here if FAMILIES[family].executes]
    facts = {
        "pack": f"{pack.manifest.id} version {pack.manifest.version}",
        "digest": pack.digest,
        "rows": str(len(pack)),
    }

    report("comparing with the twin", 0, 1)
    twin = compare_with_twins(pack)
    report("comparing with the twin", 1, 1)
    notes += twin.notes
    looked = over(here, {"P10": str(twin)}, looked)

    sandbox = await _sandbox(pack, backend) if run and runs_code(pack) else None
    seen = _Count(report, "looking for what is hidden", sum(map(is_seen, pack.entries)))
    sight = await look_at_pack(pack, sandbox, workers, seen.one)
    notes += sight.notes
    looked = over(here, sight.looked(), looked)

    if sandbox is not None:
        facts["sandbox"] = sandbox.name
        tried = _Count(report, "trying candidates", sum(FAMILIES[entry.family].executes for entry in pack.entries))
        trials = await try_pack(
            pack, _ignore, workers, backend=backend, further=Entrants(mutants, seed), on_row=tried.one
        )
        notes += outcome_notes(pack, trials, floor)
        looked = over(code, looked_at(trials), looked)
        facts["trials"] = str(len(trials.trials))
    facts["seconds"] = f"{time.monotonic() - began:.1f}"
    return make_report(pack, notes, looked, facts)


async def _sandbox(pack: BenchmarkPack, backend: str) -> Sandbox:
    roots = task_roots(entry.image for entry in pack.entries if FAMILIES[entry.family].executes)
    return (await select_sandbox(backend, ISOLATED, roots)).sandbox


class _Count:
    """Says how far something is."""

    def __init__(self, report: OnProgress, what: str, total: int) -> None:
        self._report, self._what, self._total, self._done = report, what, total, 0

    def one(self) -> None:
        self._done += 1
        self._report(self._what, self._done, self._total)


def _quiet(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""


def _ignore(trial: object) -> None:
    """Rows are counted, not trials."""
