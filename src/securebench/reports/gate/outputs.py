"""A gate for people and CI services: lines, markdown, annotations."""

from __future__ import annotations

from collections.abc import Iterator

from securebench._text import one_line
from securebench.reports.gate.conditions import Gate
from securebench.reports.github import annotation
from securebench.reports.markdown import name, plain, table

_LONGEST = 500


def lines(gate: Gate) -> Iterator[str]:
    """One for each condition, then the verdict."""
    for one in gate.outcomes:
        yield f"{'ok  ' if one.held else 'FAIL'} {one.condition}: {one_line(one.words, _LONGEST)}"
        yield from (f"     note: {one_line(note, _LONGEST)}" for note in one.notes)
    held = sum(one.held for one in gate.outcomes)
    verdict = "PASSED" if gate.open else "NOT PASSED"
    yield f"{one_line(gate.run.label, 120)}: {verdict}, {held} of {len(gate.outcomes)} conditions hold"


def markdown(gate: Gate) -> str:
    rows = [["✅" if one.held else "❌", f"`{one.condition}`", plain(one.words)] for one in gate.outcomes]
    notes = [f"- {plain(note)}" for one in gate.outcomes for note in one.notes]
    head = f"### {'✅ Passed' if gate.open else '❌ Not passed'}: {name(gate.run.label)}"
    return "\n".join([head, "", *table(["", "condition", "found"], rows), *([""] if notes else []), *notes]) + "\n"


def annotate(gate: Gate) -> Iterator[str]:
    for one in gate.outcomes:
        yield annotation("notice" if one.held else "error", f"{one.condition}: {gate.run.label}", one.words)
        yield from (annotation("warning", f"{one.condition}: {gate.run.label}", note) for note in one.notes)
