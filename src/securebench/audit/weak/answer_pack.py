"""Validation that looks at nothing but the reference solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from securebench import _json
from securebench.audit.plays.answer import Question
from securebench.audit.plays.answer_pack import Files, laid_out, tried_in
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.benchmark_pack import load_benchmark_pack


@dataclass(frozen=True, slots=True)
class ReferencePasses:
    """Accepts a pack that loads and whose references pass, whatever else does."""

    rows: tuple[Question, ...]
    files: Files = ()

    async def on(self, ground: Ground) -> Seen:
        rows = tuple(replace(row, private=_without_mutants(row.private)) for row in self.rows)
        directory = laid_out(rows, self.files, ground)
        trials = await tried_in(load_benchmark_pack(directory / "manifest.yaml", directory / "tasks.jsonl"))
        broken = [f"{trial.name} {trial.outcome}" for trial in trials.trials if trial.must_pass and not trial.held]
        return Seen(End.MISSED if broken else End.REACHED, ", ".join(broken))


def _without_mutants(evaluation: str) -> str:
    """They are not even tried."""
    fields: Any = _json.loads(evaluation)
    return _json.dumps({name: value for name, value in fields.items() if name != "mutants"})
