"""Notes of the checks, made findings: one for everything found, one for each rule that found nothing, one verdict for
each row."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from securebench import _fs, _yaml
from securebench.audit.pack.notes import Note
from securebench.audit.pack.rules import GROUPS, RULES, VERDICT, VERDICT_RULE
from securebench.audit.report.model import Finding, Mark, Place, Report
from securebench.benchmark_pack import BenchmarkPack

PACK = "pack"
"""The column of what is about no family in particular."""
_WEIGHT = {mark: weight for weight, mark in enumerate(Mark)}


Looked = dict[tuple[str, str], str]
"""What was looked at for a rule, in rows of a family."""


def over(families: Iterable[str], looked: Mapping[str, str], before: Looked) -> Looked:
    """`before`, and what was looked at for some rules in these families."""
    found = dict(before)
    for family in families:
        for rule, what in looked.items():
            found[rule, family] = f"{found[rule, family]}; {what}" if (rule, family) in found else what
    return found


def make_report(pack: BenchmarkPack, notes: Iterable[Note], looked: Looked, facts: Mapping[str, str]) -> Report:
    """A rule that was not looked at in a family of the pack that it is about was skipped."""
    families = {entry.id: entry.family for entry in pack.entries}
    order = sorted(notes, key=lambda note: (list(RULES).index(note.rule), note.line))
    with _fs.open_named(pack.manifest_path) as file:
        manifest = file.read(_yaml.MAX_BYTES).decode("utf-8", "replace").splitlines()
    findings = [_finding(pack, note, families, manifest) for note in order]
    here = sorted({entry.family for entry in pack.entries})
    findings += _quiet(here, looked, {(finding.rule, finding.column) for finding in findings})
    findings += _verdicts(pack, findings)
    findings.sort(key=lambda finding: list(GROUPS).index(finding.group))
    columns = (*([PACK] if any(finding.column == PACK for finding in findings) else []), *here)
    passed = all(finding.mark is not Mark.FAILED for finding in findings)
    return Report(f"Audit of {pack.manifest.id}", passed, time.time(), facts, GROUPS, tuple(columns), tuple(findings))


def _finding(pack: BenchmarkPack, note: Note, families: Mapping[str, str], manifest: list[str]) -> Finding:
    rule = RULES[note.rule]
    place = Place(pack.tasks_path.name, note.line or 1)
    if note.word and not note.task:
        place = next(
            (Place(pack.manifest_path.name, n) for n, text in enumerate(manifest, 1) if note.word in text), place
        )
    column = note.column or families.get(note.task, PACK)
    return Finding(
        rule.id, rule.title, rule.group, column, note.mark or rule.mark, note.detail, rule.fix, place, note.task
    )


def _quiet(here: Iterable[str], looked: Looked, loud: Collection[tuple[str, str]]) -> Iterable[Finding]:
    """What was looked at and in order, and what was not looked at."""
    for rule in RULES.values():
        for family in here if rule.id != VERDICT_RULE else ():
            if family in rule.families and (rule.id, family) not in loud:
                what = looked.get((rule.id, family))
                mark, detail = (Mark.SKIPPED, "not looked at") if what is None else (Mark.OK, what)
                yield Finding(rule.id, rule.title, rule.group, family, mark, detail)


def _verdicts(pack: BenchmarkPack, findings: Iterable[Finding]) -> Iterable[Finding]:
    by_task: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.subject:
            by_task[finding.subject].append(finding)
    rule, path = RULES[VERDICT_RULE], pack.tasks_path.name
    for entry in pack.entries:
        found = [finding for finding in by_task.get(entry.id, ()) if finding.mark in (Mark.WARNING, Mark.FAILED)]
        mark = max((finding.mark for finding in found), key=_WEIGHT.__getitem__, default=Mark.OK)
        names = ", ".join(dict.fromkeys(finding.rule for finding in found))
        detail = f"see {names}" if found else "nothing was found against it"
        yield Finding(
            rule.id, rule.title, VERDICT, entry.family, mark, detail, "", Place(path, entry.line), subject=entry.id
        )
