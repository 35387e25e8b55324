"""What a run that checks out still does not prove, from what is known of it. Said every time, because a valid seal
reads like more than it is."""

from __future__ import annotations

from collections.abc import Iterator

from securebench.evidence.lines import Lines
from securebench.evidence.seals import KeyFacts, Standing

_MODELS = {"chat", "codex", "claude_code"}
_ASSURANCES = {
    "shared_process": "were reached by tests that shared a process with candidate code, which could have lied to them",
    "judged": "are a model's opinion",
    "guarded": "were reached behind a guard and not behind the kernel's walls",
    "unsafe": "were reached without the audit of the walls",
}


def not_proven(lines: Lines, key: KeyFacts | None) -> list[str]:
    """One sentence each, the particular ones first."""
    return [*_who(key), *_what(lines), *_how(lines), *_ever(lines)]


def _who(key: KeyFacts | None) -> Iterator[str]:
    if key is None:
        yield "who made this run: it has no valid seal"
    elif key.standing is Standing.EPHEMERAL:
        yield "who made this run: its key was made for it and belongs to nobody"
    elif key.standing is Standing.UNKNOWN:
        yield f"who made this run: {key.id} is not among the keys you trust"


def _what(lines: Lines) -> Iterator[str]:
    plan = lines.plan
    if plan.filters:
        yield (
            f"a score on the whole of {plan.benchmark.id}: only {len(plan.tasks)} tasks were chosen ({_filters(lines)})"
        )
    if lines.missing:
        yield f"how the {lines.missing} planned attempts without a record would have come out"
    faults = lines.counts["error"] - lines.superseded
    if faults > 0:
        yield f"how {faults} attempts would have come out on which the host failed"
    if lines.counts["pending"]:
        yield f"how {lines.counts['pending']} responses would have been judged: nobody judged them"
    if lines.breaks:
        where = ", ".join(map(str, lines.breaks))
        yield f"that all attempts were made under the same terms: the plan was changed on line {where}"


def _how(lines: Lines) -> Iterator[str]:
    for name, words in _ASSURANCES.items():
        if count := lines.assurance[name]:
            yield f"as much as the others: {count} verdicts {words} ({name})"
    carried = sum(count for digest, count in lines.audits.items() if digest)
    if carried and (bare := lines.audits[""]):
        yield f"that the host withstood the attack suite when {bare} of the attempts were made: they carry no audit"
    if carried:
        yield "that a host which withstood the attack suite before the run did so throughout, or against other attacks"
    if lines.plan.unsafe:
        yield "that the walls between candidates and tests stood: the operator went without the audit"
    if lines.plan.harness.get("type") in _MODELS:
        yield "that the model which answered is the one that was named: a provider can serve another"


def _ever(lines: Lines) -> Iterator[str]:
    yield "that whoever ran it was honest: who controls the machine controls what SecureBench sees and signs"
    yield "that it is their only run: others, with worse results, may have been left out"
    yield f"that {lines.plan.benchmark.id} measures what its name says, or that its answers were not trained on"


def _filters(lines: Lines) -> str:
    filters = lines.plan.filters
    parts = [f"limit {filters.limit}"] if filters.limit is not None else []
    parts += [f"{len(filters.tasks)} task patterns"] if filters.tasks else []
    parts += [f"tags {', '.join(filters.tags)}"] if filters.tags else []
    return ", ".join(parts)
