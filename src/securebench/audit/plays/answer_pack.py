"""Packs before the controls and trials that every pack is validated by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from securebench.audit.pack.controls import load_with_controls
from securebench.audit.pack.trials import TrialReport, runs_code, try_pack
from securebench.audit.plays.answer import Question, write_rows
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.benchmark_pack import BenchmarkPack

Files = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Wants its rows to come through validation; `files` lie on the hidden side of the pack."""

    rows: tuple[Question, ...]
    files: Files = ()

    async def on(self, ground: Ground) -> Seen:
        directory = laid_out(self.rows, self.files, ground)
        pack, controls = load_with_controls(directory / "manifest.yaml", directory / "tasks.jsonl")
        if not controls.ok:
            names = sorted({violation.control for violation in controls.violations})
            return Seen(End.MISSED, f"these pass: {', '.join(names)}", "controls")
        trials = await tried_in(pack)
        if any(trial.outcome not in ("passed", "failed") for trial in trials.trials):
            return Seen(End.FAULT, str(trials.as_json()["broken_trials"]))
        broken = [f"{trial.name} {trial.outcome}" for trial in trials.broken]
        return Seen(End.MISSED, ", ".join(broken), "trials") if broken else Seen(End.REACHED, "accepted")


async def tried_in(pack: BenchmarkPack) -> TrialReport:
    return await try_pack(pack, lambda _: None, workers=1) if runs_code(pack) else TrialReport()


def laid_out(rows: tuple[Question, ...], files: Files, ground: Ground) -> Path:
    directory = ground.directory / "pack"
    write_rows(directory, rows, ground)
    for path, text in files:
        (place := directory / "hidden" / path).parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return directory
