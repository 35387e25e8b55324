"""A report as SARIF: every finding is a result, what is in order too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from securebench.audit.report.model import Finding, Mark, Report
from securebench.reports.sarif import Kind, Level, Log, Result

_KINDS: Mapping[Mark, tuple[Kind, Level]] = {
    Mark.OK: ("pass", "none"),
    Mark.SKIPPED: ("notApplicable", "none"),
    Mark.WARNING: ("fail", "warning"),
    Mark.FAILED: ("fail", "error"),
}


def sarif(report: Report) -> dict[str, Any]:
    """One run with one rule for each check and one result for each finding."""
    properties = {"passed": report.passed, "facts": dict(report.facts)}
    results = tuple(map(_result, report.findings))
    return Log(report.title, report.time, results, report.rules, properties).as_json()


def _result(finding: Finding) -> Result:
    kind, level = _KINDS[finding.mark]
    name, place = finding.subject or finding.rule, finding.place
    parts = [f"{name} on {finding.column}: {finding.title}.", finding.detail, finding.fix]
    return Result(
        rule=finding.rule,
        title=finding.title,
        kind=kind,
        level=level,
        message="\n".join(part for part in parts if part),
        name=f"{finding.column}/{name}",
        same_as=(finding.rule, finding.subject, finding.column, finding.group),
        path=None if place is None else place.path,
        line=1 if place is None else place.line,
        properties={"group": finding.group, "column": finding.column, "subject": finding.subject},
    )
