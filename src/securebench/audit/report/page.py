"""A report as one HTML page, on the base that all pages of ours share: nothing is loaded and no script runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from securebench.audit.report.model import GLYPHS, Finding, Mark, Report, counted, heaviest
from securebench.reports.html.document import Design, render

_HERE = Path(__file__).parent
_TILE, _STEP, _PER_ROW, _MOST_TILES = 10, 12, 15, 150


@dataclass(frozen=True, slots=True)
class Tile:
    """One finding in a cell of the map. `width` is a tile's, or a share of the cell where there are too many."""

    x: float
    y: float
    width: float
    mark: Mark
    tip: str


@dataclass(frozen=True, slots=True)
class Cell:
    mark: Mark | None
    numbers: tuple[tuple[Mark, int], ...]
    words: str
    tiles: tuple[Tile, ...] = ()
    width: int = _PER_ROW * _STEP
    height: int = _STEP


@dataclass(frozen=True, slots=True)
class Row:
    """All findings of one rule about one subject: one for each column, or several where a rule looks at places."""

    name: str
    text: str
    marks: tuple[tuple[Mark | None, str], ...]  # per column: the mark, and what it is called
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    title: str
    text: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Group:
    key: str
    title: str
    mark: Mark | None
    words: str
    cells: tuple[Cell, ...]
    columns: tuple[str, ...]  # those with anything in them
    rules: tuple[Rule, ...]


def page(report: Report) -> str:
    """The whole page."""
    found = {mark: sum(one.mark is mark for one in report.findings) for mark in Mark}
    return render(
        Design(_HERE / "page.html.j2", (_HERE / "page.css",)),
        report=report,
        groups=[_group(report, key) for key in report.groups],
        counts=[(mark, found[mark], report.words[mark]) for mark in Mark if found[mark] or mark is Mark.FAILED],
        unsound=report.unsound(),
        glyphs=GLYPHS,
        words=report.words,
        when=datetime.fromtimestamp(report.time, UTC),
        tile=_TILE,
    )


def _group(report: Report, key: str) -> Group:
    findings = [one for one in report.findings if one.group == key]
    columns = tuple(column for column in report.columns if any(one.column == column for one in findings))
    return Group(
        key,
        report.groups[key],
        heaviest(findings),
        counted(findings, report.words),
        tuple(_cell(report.cell(key, column), report) for column in report.columns),
        columns,
        tuple(_rule(report, rule, findings, columns) for rule in dict.fromkeys(one.rule for one in findings)),
    )


def _rule(report: Report, rule: str, findings: Iterable[Finding], columns: Sequence[str]) -> Rule:
    subjects: dict[str, list[Finding]] = {}
    for one in findings:
        if one.rule == rule:
            subjects.setdefault(one.subject, []).append(one)
    rows = tuple(_row(report, subject, mine, columns) for subject, mine in subjects.items())
    return Rule(rule, rows[0].findings[0].title, report.rules.get(rule, ""), rows)


def _row(report: Report, subject: str, findings: Sequence[Finding], columns: Sequence[str]) -> Row:
    marks = [heaviest(one for one in findings if one.column == column) for column in columns]
    named = tuple((mark, "" if mark is None else report.words[mark]) for mark in marks)
    return Row(subject, report.rules.get(subject, ""), named, tuple(findings))


def _cell(findings: Sequence[Finding], report: Report) -> Cell:
    mark, words = heaviest(findings), counted(findings, report.words)
    if mark is None:
        return Cell(None, (), "nothing to look at here")
    counts = [(one, sum(finding.mark is one for finding in findings)) for one in Mark]
    numbers = tuple((one, count) for one, count in counts if count)
    mark = Mark.OK if mark is Mark.SKIPPED and len(numbers) > 1 else mark  # what was left out does not grey the rest
    ordered = sorted(findings, key=lambda one: list(Mark).index(one.mark), reverse=True)
    if len(findings) > _MOST_TILES:
        return Cell(mark, numbers, words, tuple(_bar(ordered, report)))
    tiles = tuple(
        Tile(n % _PER_ROW * _STEP, n // _PER_ROW * _STEP, _TILE, one.mark, _tip(one, report))
        for n, one in enumerate(ordered)
    )
    return Cell(mark, numbers, words, tiles, height=(1 + (len(tiles) - 1) // _PER_ROW) * _STEP)


def _bar(ordered: Sequence[Finding], report: Report) -> Iterable[Tile]:
    """Shares of the cell's width, the heaviest first, each wide enough to be seen."""
    full, x = float(_PER_ROW * _STEP - _STEP + _TILE), 0.0
    counts = [(mark, sum(one.mark is mark for one in ordered)) for mark in reversed(Mark)]
    present = [(mark, count) for mark, count in counts if count]
    for mark, count in present:
        width = max(_TILE, (full - _TILE * len(present)) * count / len(ordered) + _TILE)
        width = min(width, full - x)
        yield Tile(round(x, 2), 0, round(width, 2), mark, f"{count} {report.words[mark]}")
        x += width


def _tip(finding: Finding, report: Report) -> str:
    return f"{finding.subject or finding.rule}: {report.words[finding.mark]}"
