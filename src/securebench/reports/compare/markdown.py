"""A comparison as markdown, for pull requests and step summaries."""

from __future__ import annotations

from collections.abc import Iterator

from securebench.reports.compare.comparison import Comparison, Match, Side
from securebench.reports.compare.words import difference_text, explained, listed_flips, seen, share, tested, verdict
from securebench.reports.markdown import details, name, plain, table
from securebench.reports.words import counted, interval_text, share_text

_MARKS = {"better": "🟢", "worse": "🔴", "no difference shown": "⚪"}


def markdown(comparison: Comparison) -> str:
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    yield "### Comparison of runs"
    yield ""
    yield from table(["run", "score:", "95 % interval:", "passed:", "errors:", "seal"], map(_side, comparison.sides))
    for match in comparison.matches:
        yield ""
        yield from _match(match, comparison.corrected)
    if warnings := list(_warnings(comparison)):
        yield ""
        yield "> [!WARNING]"
        yield "> These runs are not simply comparable."
        yield from (f"> - {line}" for line in warnings)


def _side(side: Side) -> list[str]:
    estimate, counts = side.score.estimate, side.score.counts
    return [
        name(side.run.label),
        "–" if estimate is None else share_text(estimate.mean),
        "–" if estimate is None else interval_text(estimate),
        f"{counts['passed']:,} of {side.score.judged:,}",
        f"{counts['error']:,}",
        side.run.seal_status,
    ]


def _match(match: Match, corrected: bool) -> Iterator[str]:
    told = verdict(match)
    first, second = name(match.first.label), name(match.second.label)
    yield f"{_MARKS[told]} **{second} against {first}: {told}.** {explained(match, corrected)}."
    yield ""
    one = match.difference
    yield f"Tasks won {one.wins:,}, tied {one.ties:,}, lost {one.losses:,}. {tested(match)}. {seen(match)}"
    if match.parts:
        yield ""
        rows = [[name(family), f"{part.tasks:,}", difference_text(part)] for family, part in match.parts]
        yield from table(["family", "tasks:", "difference (points):"], rows)
    flips, more = listed_flips(match)
    if flips:
        rows = [[kind, name(one.task_id), share(one.first.mean), share(one.second.mean)] for kind, one in flips]
        lines = table(["", "task", "first:", "second:"], rows)
        lines += ["", f"… and {more:,} more (`--json` has all)"] if more else []
        yield ""
        yield from details(f"{counted(len(match.flips), 'task')} flipped", lines)


def _warnings(comparison: Comparison) -> Iterator[str]:
    for side in comparison.sides:
        yield from (f"{name(side.run.label)} {plain(line)}" for line in side.caveats)
    for match in comparison.matches:
        both = f"{name(match.first.label)} and {name(match.second.label)}"
        yield from (f"{both}: {plain(line)}" for line in match.caveats)
