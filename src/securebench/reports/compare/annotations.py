"""A comparison as annotations for GitHub's runners: what changed, and why it may not be fair."""

from __future__ import annotations

from collections.abc import Iterator

from securebench.reports.compare.comparison import Comparison
from securebench.reports.compare.words import explained, verdict
from securebench.reports.github import Level, annotation

_LEVELS: dict[str, Level] = {"better": "notice", "worse": "error", "no difference shown": "notice"}


def annotate(comparison: Comparison) -> Iterator[str]:
    for match in comparison.matches:
        told = verdict(match)
        title = f"{match.second.label} against {match.first.label}: {told}"
        yield annotation(_LEVELS[told], title, explained(match, comparison.corrected))
    for side in comparison.sides:
        yield from (annotation("warning", f"{side.run.label} is not simply comparable", line) for line in side.caveats)
    for match in comparison.matches:
        title = f"{match.first.label} and {match.second.label} are not simply comparable"
        yield from (annotation("warning", title, line) for line in match.caveats)
