"""A report as SARIF 2.1.0, which code hosts and editors read.

What is in order is there too, as results of the kind `pass`: a scan that lists only what is wrong does not show what
it looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from securebench._text import visible
from securebench.audit.report.model import Finding, Mark, Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_KINDS: Mapping[Mark, tuple[str, str]] = {  # kind, level
    Mark.OK: ("pass", "none"),
    Mark.SKIPPED: ("notApplicable", "none"),
    Mark.WARNING: ("fail", "warning"),
    Mark.FAILED: ("fail", "error"),
}


def sarif(report: Report) -> dict[str, Any]:
    """One run with one rule for each check and one result for each finding."""
    rules = list(dict.fromkeys(one.rule for one in report.findings))
    indexes = {rule: index for index, rule in enumerate(rules)}
    titles = {one.rule: one.title for one in report.findings}
    driver = {
        "name": "SecureBench",
        "semanticVersion": version("securebench"),
        "informationUri": "https://securebench.org",
        "rules": [_rule(rule, titles[rule], report.rules.get(rule, "")) for rule in rules],
    }
    began = datetime.fromtimestamp(report.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{_plain(report.title)}/"},
        "invocations": [{"executionSuccessful": True, "startTimeUtc": began}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, indexes[one.rule]) for one in report.findings],
        "properties": {
            "passed": report.passed,
            "facts": {_plain(name): _plain(text) for name, text in report.facts.items()},
        },
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: str, title: str, claim: str) -> dict[str, Any]:
    described = {"fullDescription": {"text": _plain(claim)}} if claim else {}
    return {
        "id": _plain(rule),
        "shortDescription": {"text": _plain(title)},
        **described,
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["security"]},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    kind, level = _KINDS[finding.mark]
    name = finding.subject or finding.rule
    parts = [f"{name} on {finding.column}: {finding.title}.", finding.detail, finding.fix]
    return {
        "ruleId": _plain(finding.rule),
        "ruleIndex": index,
        "kind": kind,
        "level": level,
        "message": {"text": _plain("\n".join(part for part in parts if part))},
        "locations": [_location(finding, name)],
        "partialFingerprints": {"securebench/v1": _fingerprint(finding)},
        "properties": {
            "group": _plain(finding.group),
            "column": _plain(finding.column),
            "subject": _plain(finding.subject),
        },
    }


def _location(finding: Finding, name: str) -> dict[str, Any]:
    logical = [{"fullyQualifiedName": _plain(f"{finding.column}/{name}"), "kind": "member"}]
    if finding.place is None:
        return {"logicalLocations": logical}
    artifact = {"uri": quote(finding.place.path.encode("utf-8", "surrogatepass"), safe="/")}
    region = {"startLine": max(1, finding.place.line)}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}, "logicalLocations": logical}


def _fingerprint(finding: Finding) -> str:
    """The same finding of the next audit has the same one, whatever its detail says."""
    text = "\0".join((finding.rule, finding.subject, finding.column, finding.group))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(text: str) -> str:
    return visible(text, keep="\n")
