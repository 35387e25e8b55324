"""Packs that are audited without running anything, and what was found in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from tests.packs import FILES, MANIFEST, Row, row, write_pack

from securebench.audit.pack.run import audit_pack
from securebench.audit.report.model import Finding, Mark, Report


def audited(directory: Path, **options: Any) -> Report:
    return anyio.run(partial(audit_pack, directory, **{"run": False, **options}))


def found(report: Report, rule: str) -> list[Finding]:
    """What a rule has against the pack."""
    return [one for one in report.findings if one.rule == rule and one.mark in (Mark.WARNING, Mark.FAILED)]


def complaints(report: Report) -> list[tuple[str, str, str]]:
    """All there is against the pack."""
    marks = (Mark.WARNING, Mark.FAILED)
    return [(one.rule, one.subject, one.detail) for one in report.findings if one.mark in marks]


def audit_rows(
    directory: Path, rows: Iterable[Row], files: Mapping[str, str | bytes] | None = None, manifest: str = MANIFEST
) -> Report:
    return audited(write_pack(directory, rows, manifest, {**FILES, **(files or {})}))


def choice(number: int, answer: Any = None, **changes: Any) -> Row:
    """A row whose options differ in nothing that gives the answer away."""
    options = [f"{word}{number:03d}" for word in ("alder", "birch", "cedar", "maple")]
    question = f"Which tree stands in plot {number * 7919 % 997}?"
    answer = (number * 5 + number // 4) % 4 if answer is None else answer
    return row("multiple_choice", id=f"q{number}", input={"question": question, "choices": options}) | {
        "eval": {"answer": answer},
        **changes,
    }


def number_row(number: int, question: str, answer: Any, **changes: Any) -> Row:
    public = {"question": question, "answer_format": "number"}
    return row("short_answer", id=f"n{number}", input=public, eval={"accepted_answers": [answer]}, **changes)
