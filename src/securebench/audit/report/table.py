"""A report as plain text: the map, then what somebody has to act on."""

from __future__ import annotations

from collections.abc import Iterator

from securebench._text import one_line, visible
from securebench.audit.report.model import GLYPHS, Finding, Mark, Report, counted, heaviest

_TITLE = 44
_DETAIL = 600
_MOST = 50
_SHORT = 3  # a letter says something beside its title, a word does not


def lines(report: Report, *, verbose: bool = False) -> Iterator[str]:
    """For a terminal or a log; `verbose` also lists what is in order."""
    yield from _map(report)
    shown = report.findings if verbose else report.unsound()
    for number, finding in enumerate(shown):
        if number == _MOST and not verbose:
            yield f"… and {len(shown) - number} more (--json shows all of them)"
            break
        yield from _finding(finding)
    yield ""
    yield from (f"{one_line(name, 40)}: {one_line(value, 100)}" for name, value in report.facts.items())
    yield visible(f"{report.title}: {counted(report.findings, report.words)}", keep="")
    yield "PASSED" if report.passed else "NOT PASSED"


def _map(report: Report) -> Iterator[str]:
    cells = {(group, column): _cell(report.cell(group, column)) for group in report.groups for column in report.columns}
    names = {
        group: one_line(f"{group} {title}" if len(group) < _SHORT else title, _TITLE)
        for group, title in report.groups.items()
    }
    first = max(map(len, names.values()), default=0)
    widths = {
        column: max([len(one_line(column, 20)), *(len(cells[group, column]) for group in report.groups)])
        for column in report.columns
    }
    yield " " * first + "".join(f"  {one_line(column, 20):>{widths[column]}}" for column in report.columns)
    for group, name in names.items():
        yield f"{name:{first}}" + "".join(f"  {cells[group, column]:>{widths[column]}}" for column in report.columns)


def _cell(findings: tuple[Finding, ...]) -> str:
    """`34 ✓`, or `2 of 34 ✗`: how many have the heaviest mark."""
    mark = heaviest(findings)
    if mark is None:
        return "·"
    number = sum(one.mark is mark for one in findings)
    return f"{number if mark is Mark.OK else f'{number} of {len(findings)}'} {GLYPHS[mark]}"


def _finding(finding: Finding) -> Iterator[str]:
    where = f" ({one_line(finding.place.path, 120)}:{finding.place.line})" if finding.place else ""
    name = one_line(finding.subject or finding.rule, 120)
    yield ""
    yield f"{GLYPHS[finding.mark]} {name} on {one_line(finding.column, 40)}{where}: {one_line(finding.title, 200)}"
    if finding.detail:
        yield f"    {one_line(finding.detail, _DETAIL)}"
    if finding.fix:
        yield f"  → {one_line(finding.fix, _DETAIL)}"
