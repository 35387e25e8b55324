"""Admission: every row of a pack is tried before anybody is scored on it.

Somebody who does nothing, constants, echoes and those who know the prompt's examples must not pass; the reference must;
of mutants of the reference the tests should notice most. Rows that run code are tried in sandboxes, as `securebench
audit` tries them; the verdict on a text is a pure function and is asked directly."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from securebench import _json
from securebench._removal import remove_tree
from securebench._text import one_line
from securebench.answers.options import LETTERS
from securebench.answers.short import written
from securebench.audit.pack.controls import ControlReport, text_judge
from securebench.audit.pack.entrants import MUTATED, Entrants
from securebench.audit.pack.shares import load_with
from securebench.audit.pack.trials import REFERENCE, Trial, TrialReport, runs_code, try_pack
from securebench.benchmark_pack import BenchmarkPack, find_pack
from securebench.errors import ConfigError
from securebench.families.multiple_choice import right_options
from securebench.families.registry import FAMILIES
from securebench.importers.importing import Import, ImportReport
from securebench.pack_schema import AnyRow
from securebench.records.admissions import Admission, Outcome, RowAdmission, count
from securebench.records.record import securebench_digest
from securebench.verifiers.base import Status

MUTANTS = 4
SHOWN = 10
OnRow = Callable[[int, int], None]
"""Called with the rows that were tried in sandboxes, and how many of them there are."""
_NOT_JUDGED = (str(Status.ERROR), str(Status.PENDING))
_ELEMENTS = "; "


@dataclass(slots=True)
class TextTrials:
    """Trials of rows whose verdict is a function of text: the controls, and the key as an answer."""

    controls: ControlReport = field(default_factory=ControlReport)
    references: dict[str, Outcome] = field(default_factory=dict)

    def see(self, row: AnyRow, line: int) -> None:
        self.controls.see(row, line)
        if FAMILIES[row.family].executes:
            return
        judge = text_judge(row)
        outcome: Outcome = "not_judged"
        if judge is not None:
            outcome = "passed" if judge(right_answer(row)).passed else "failed"
        self.references[row.id] = outcome

    def to_bytes(self) -> bytes:
        return _json.dumps([self.controls.to_bytes().decode(), self.references]).encode()

    def add_bytes(self, data: bytes) -> None:
        controls, references = json.loads(data)
        self.controls.add_bytes(controls.encode())
        self.references |= references


def right_answer(row: AnyRow) -> str:
    """A response that gives a text row's own key."""
    if row.family == "multiple_choice":
        right = sorted(right_options(row.input.choices, row.eval.answer))
        shown = right if row.input.multi_select else right[:1]
        return ", ".join(LETTERS[index] for index in shown)
    if row.family == "short_answer":
        answers = [written(answer) for answer in row.eval.accepted_answers]
        form = row.input.answer_format
        is_set = (form if isinstance(form, str) else getattr(form, "type", "")) == "set"
        return f"Answer: {_ELEMENTS.join(answers) if is_set else answers[0]}"
    return str(row.eval.rubric.accepted_answers[0])


def admit(
    path: Path, *, mutants: int = MUTANTS, seed: int = 0, workers: int | None = None, on_row: OnRow = lambda *_: None
) -> Admission:
    """Try every row of the pack at `path`. Raises PackError, and SandboxUnavailable where its code cannot be run."""
    pack, text = load_with(*find_pack(path), TextTrials)
    code: TrialReport | None = None
    if runs_code(pack):
        total = sum(FAMILIES[entry.family].executes for entry in pack.entries)
        code = anyio.run(_tried, pack, Entrants(mutants, seed), workers, _Counter(on_row, total))
    rows = tuple(_rows(pack, text, code))
    controlled = text.controls.controlled
    return Admission(
        pack=pack.manifest.id,
        version=pack.manifest.version,
        digest=pack.digest,
        securebench=securebench_digest(),
        sandbox=None if code is None else code.sandbox,
        mutants_each=mutants,
        seed=seed,
        counts=count(rows),
        constants={name: round(hits / controlled, 4) for name, hits in sorted(text.controls.constants.items())},
        rows=rows,
    )


def without_failing(
    job: Import, directory: Path, admission: Admission
) -> tuple[BenchmarkPack, ImportReport, Admission]:
    """Make the pack in `directory` again without the rows that failed; those of which nothing is known because the host
    failed stay. Raises ConfigError where no row is left."""
    failing = frozenset(row.id for row in admission.failing if not row.host_errors)
    if len(failing) == len(admission.rows):
        shown = "\n".join(f"task {row.id}: {'; '.join(faults(row))}" for row in admission.failing[:SHOWN])
        more = f"\n… and {len(failing) - SHOWN} more" if len(failing) > SHOWN else ""
        raise ConfigError(f"{job.source.name}: no row is left: none of {len(failing)} was admitted:\n{shown}{more}")
    for entry in directory.iterdir():
        remove_tree(entry) if entry.is_dir() else entry.unlink()
    pack, report = job.write(directory, without=failing)
    rows = tuple(row.model_copy(update={"excluded": row.id in failing}) for row in admission.rows)
    return pack, report, admission.model_copy(update={"rows": rows, "counts": count(rows), "digest": pack.digest})


def faults(row: RowAdmission) -> list[str]:
    """Why a row is not admitted, in words."""
    found = [f"the reference: {row.reference}"] if row.reference in ("failed", "error") else []
    found += [f"passes without work: {name}" for name in row.without_work]
    found += [f"not judged: {text}" for text in row.pack_errors]
    return found + [f"not judged, by the host's fault: {text}" for text in row.host_errors]


async def _tried(pack: BenchmarkPack, entrants: Entrants, workers: int | None, counter: _Counter) -> TrialReport:
    return await try_pack(pack, lambda _: None, workers, further=entrants, on_row=counter.one)


class _Counter:
    def __init__(self, on_row: OnRow, total: int) -> None:
        self._on_row, self._total, self._done = on_row, total, 0

    def one(self) -> None:
        self._done += 1
        self._on_row(self._done, self._total)


def _rows(pack: BenchmarkPack, text: TextTrials, code: TrialReport | None) -> Iterable[RowAdmission]:
    by_row: dict[str, list[Trial]] = defaultdict(list)
    for trial in code.trials if code is not None else ():
        by_row[trial.task_id].append(trial)
    broken: dict[str, list[str]] = defaultdict(list)
    for violation in text.controls.violations:
        broken[violation.task_id].append(violation.control)
    for entry in pack.entries:
        if FAMILIES[entry.family].executes:
            yield _code_row(entry.id, by_row[entry.id])
        else:
            yield _row(entry.id, text.references[entry.id], broken.get(entry.id, []))


def _code_row(task: str, trials: list[Trial]) -> RowAdmission:
    references = [trial.outcome for trial in trials if trial.rule == REFERENCE]
    mutants = [trial for trial in trials if trial.rule == MUTATED and trial.outcome not in _NOT_JUDGED]
    passed = [trial for trial in trials if not trial.must_pass and trial.rule != MUTATED and trial.outcome == "passed"]
    unknown = [trial for trial in trials if trial.outcome in _NOT_JUDGED]
    return _row(
        task,
        _reference(references),
        [trial.name for trial in passed],
        len(mutants),
        sum(trial.held for trial in mutants),
        _said(trial for trial in unknown if not trial.by_host),
        _said(trial for trial in unknown if trial.by_host),
    )


def _row(
    task: str,
    reference: Outcome,
    without_work: list[str],
    mutants: int = 0,
    noticed: int = 0,
    pack_errors: list[str] | None = None,
    host_errors: list[str] | None = None,
) -> RowAdmission:
    row = RowAdmission(
        id=task,
        admitted=True,
        reference=reference,
        without_work=tuple(without_work),
        mutants=mutants,
        noticed=noticed,
        pack_errors=tuple(pack_errors or ()),
        host_errors=tuple(host_errors or ()),
    )
    return row if row.sound else row.model_copy(update={"admitted": False})


def _reference(outcomes: list[str]) -> Outcome:
    if not outcomes:
        return "absent"
    if all(outcome == "passed" for outcome in outcomes):
        return "passed"
    return "failed" if "failed" in outcomes else "error"


def _said(trials: Iterable[Trial]) -> list[str]:
    """What trials had to say, once where several say the same."""
    names: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        names[trial.message].append(trial.name)
    return [one_line(": ".join(filter(None, (", ".join(named), text))), 500) for text, named in names.items()]
