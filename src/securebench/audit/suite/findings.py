"""What the suite found, as a report: a class in each row of the map, a backend in each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from securebench.audit.report.model import Finding, Mark, Place, Report, Section
from securebench.audit.result import AuditResult, Group
from securebench.audit.suite.catalogue import Catalogue
from securebench.audit.suite.full import FullAudit
from securebench.audit.suite.result import Row, SuiteResult, Verdict

WALLS = "walls"
WORDS: Mapping[Mark, str] = {
    Mark.OK: "held",
    Mark.SKIPPED: "not played",
    Mark.WARNING: "warnings",
    Mark.FAILED: "did not hold",
}
_LEAD = (
    "Every attack was played for real and had to fail; its honest twin, played the same way, had to pass, because a"
    " wall that stops everybody proves nothing; and the same attack had to succeed against something made weak on"
    " purpose, because an attack that cannot even beat that proves nothing either."
)
_AGAIN = "securebench audit --full --only"
_FIXES: Mapping[Verdict, str] = {
    Verdict.SUCCEEDED: "The attack reached its goal: believe no score made on this backend. Update SecureBench and the"
    " backend, look at `securebench doctor`, and play it again ({again}). If it stays, report it as a vulnerability.",
    Verdict.FAULT: "It was stopped, but by a failure of ours or for the wrong reason. Play it again on a quiet machine"
    " ({again}); if it stays, report it with the detail.",
    Verdict.TWIN_FAILED: "An honest program failed the same way, so nothing was shown. Look at the host first (memory,"
    " load, `securebench doctor`), then play it again ({again}).",
    Verdict.BROKEN: "It does not even beat what was made weak for it here, so that its failure shows nothing. Play it"
    " again ({again}); if it stays, the attack needs repair for this host.",
    Verdict.NOT_PLAYED: "",
    Verdict.HELD: "",
}
_GROUPS: Mapping[Group, str] = {
    Group.GUARD: "What the guard refuses inside of Python",
    Group.SEAL: "What the kernel refuses inside of the process",
    Group.BACKEND: "What the backend alone keeps out",
    Group.KERNEL: "What backend and kernel refuse with the guard left out",
    Group.LIMITS: "Limits that end a program",
    Group.ORPHANS: "Nothing lives on",
    Group.SURFACE: "The command line offers the documented opt-outs only",
    Group.CHECKOUT: "CI checks what a person checks",
}


def suite_report(audit: FullAudit, catalogue: Catalogue, missing: Mapping[str, str] | None = None) -> Report:
    """`missing` names backends that this host does not offer, with why."""
    played = {row.letter for row in audit.suite.rows}
    groups = {one.letter: one.title for one in catalogue.classes if one.letter in played}
    if audit.canaries:
        groups[WALLS] = "Canaries: the walls themselves"
    return Report(
        title="Attack suite" if not audit.only else f"Attack suite, only {', '.join(audit.only)}",
        passed=audit.passed,
        time=audit.suite.time,
        facts={**audit.suite.host, "took": f"{audit.suite.seconds:.0f} s"},
        groups=groups,
        columns=audit.columns,
        findings=(*(_attack(row, catalogue) for row in audit.suite.rows), *_canaries(audit)),
        lead=_LEAD,
        rules={one.id: one.claim for one in catalogue.threats} | {one.id: one.how for one in catalogue.attacks},
        words=WORDS,
        sections=tuple(section for section in _sections(audit, catalogue, missing or {}) if section.rows),
    )


def canary_report(result: AuditResult) -> Report:
    """The fast audit alone."""
    audit = FullAudit(SuiteResult(result.time, result.seconds, {}, ()), {result.level: result})
    return Report(
        title=f"Canaries of {result.level}",
        passed=result.passed,
        time=result.time,
        facts={"level": result.level, "components": result.key, "took": f"{result.seconds:.1f} s"},
        groups={group.value: _GROUPS[group] for group in Group if any(one.group is group for one in result.checks)},
        columns=(result.level,),
        findings=tuple(replace(one, group=one.rule.removeprefix("canary-")) for one in _canaries(audit)),
        lead="Everything a stranger's program must not be able to do was tried, harmlessly, and had to fail.",
        words=WORDS,
    )


def _attack(row: Row, catalogue: Catalogue) -> Finding:
    marks = {Verdict.HELD: Mark.OK, Verdict.NOT_PLAYED: Mark.SKIPPED}
    source = catalogue.sources.get(row.attack)
    return Finding(
        rule=row.threat,
        title=row.title,
        group=row.letter,
        column=row.backend,
        mark=marks.get(row.verdict, Mark.FAILED),
        detail=row.detail if row.verdict in marks else f"{row.verdict.value}: {row.detail}",
        fix=_FIXES[row.verdict].format(again=f"`{_AGAIN} {row.attack}`"),
        place=None if source is None else Place(source),
        subject=row.attack,
    )


def _canaries(audit: FullAudit) -> list[Finding]:
    return [
        Finding(
            rule=f"canary-{check.group}",
            title=_GROUPS[check.group],
            group=WALLS,
            column=column,
            mark=Mark.OK if check.passed else Mark.FAILED,
            detail=check.detail,
            fix="" if check.passed else "Run nothing of a stranger's here until it stands: `securebench doctor`.",
            subject=check.id,
        )
        for column, result in audit.canaries.items()
        for check in result.checks
    ]


def _sections(audit: FullAudit, catalogue: Catalogue, missing: Mapping[str, str]) -> tuple[Section, ...]:
    threats = [one for one in catalogue.threats if not audit.only or one.id in {row.threat for row in audit.suite.rows}]
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in audit.suite.rows:
        if row.verdict is Verdict.NOT_PLAYED:
            reasons.setdefault((row.backend, row.detail), []).append(row.attack)
    return (
        Section(
            "What was not played",
            "Nothing is shown about these.",
            (
                *((name, f"This host does not offer it: {why}") for name, why in missing.items()),
                *((f"{column}: {', '.join(names)}", why) for (column, why), names in reasons.items()),
                *(
                    (one.id, f"{one.title}: {one.not_played}")
                    for one in catalogue.threats
                    if one.not_played and not audit.only
                ),
            ),
        ),
        Section(
            "What is not claimed",
            "Where the claims end, even where every attack was held.",
            tuple((one.id, one.not_claimed) for one in threats if one.not_claimed),
        ),
    )
