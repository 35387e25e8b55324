"""A report as JSON."""

from __future__ import annotations

from typing import Any

from securebench.audit.report.model import Finding, Mark, Report


def as_json(report: Report) -> dict[str, Any]:
    return {
        "title": report.title,
        "passed": report.passed,
        "time": round(report.time, 3),
        "facts": dict(report.facts),
        "groups": dict(report.groups),
        "columns": list(report.columns),
        "counts": {mark.value: sum(one.mark is mark for one in report.findings) for mark in Mark},
        "findings": [_finding(one) for one in report.findings],
        "sections": [
            {"title": one.title, "text": one.text, "rows": [list(row) for row in one.rows]} for one in report.sections
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.place and {"path": finding.place.path, "line": finding.place.line}
    return {
        "rule": finding.rule,
        "title": finding.title,
        "group": finding.group,
        "column": finding.column,
        "subject": finding.subject,
        "mark": finding.mark.value,
        "detail": finding.detail,
        "fix": finding.fix,
        "place": place,
    }
