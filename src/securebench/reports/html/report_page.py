"""The report of one run, or of several, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from securebench.reports.content import Content
from securebench.reports.html.axis import SHARES
from securebench.reports.html.blocks import TASKS_BYTES
from securebench.reports.html.document import Design, render
from securebench.reports.html.nodes import as_html
from securebench.reports.html.run_view import RunView, percent_scale, run_view
from securebench.reports.html.scatter import Point, scatter
from securebench.reports.html.telling import told
from securebench.reports.html.whiskers import whisker
from securebench.reports.words import GLYPHS, money_text

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent
_DESIGN = Design(_HERE / "report.html.j2", (_HERE / "report.css",), (_HERE / "report.js",))
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the overview of several."""

    letter: str
    view: RunView
    drawn: Markup | None
    cost: str


@dataclass(frozen=True, slots=True)
class Overview:
    """Several runs side by side. `warning` says why they cannot simply be compared."""

    entries: tuple[Entry, ...]
    scale: Markup
    against: Markup | None
    warning: str


def report_page(contents: Sequence[Content], *, details: bool = True) -> str:
    """Without `details`, what candidates, agents and verifiers wrote stays out of it. Raises StoreError where records
    cannot be read."""
    from markupsafe import Markup

    budget = TASKS_BYTES // max(1, len(contents)) if details else 0
    views = [run_view(f"r{number}", one, told(one, budget)) for number, one in enumerate(contents, 1)]
    return render(
        _DESIGN,
        runs=views,
        overview=_overview(views) if len(views) > 1 else None,
        glyphs=GLYPHS,
        as_html=as_html,
        whole=Markup,  # for blocks alone, which are base64
    )


def _overview(views: Sequence[RunView]) -> Overview:
    entries = tuple(
        Entry(_LETTERS[number] if number < len(_LETTERS) else str(number + 1), view, _drawn(view), _cost(view.content))
        for number, view in enumerate(views)
    )
    return Overview(entries, percent_scale(SHARES), _against(entries), _warning(views))


def _drawn(view: RunView) -> Markup | None:
    estimate = view.content.whole.estimate
    if estimate is None:
        return None
    return whisker(SHARES, estimate.mean, estimate.interval.low, estimate.interval.high)


def _cost(content: Content) -> str:
    return "" if content.run.summary.cost_usd is None else money_text(content.run.summary.cost_usd)


def _against(entries: Sequence[Entry]) -> Markup | None:
    points = []
    for entry in entries:
        summary, estimate = entry.view.content.run.summary, entry.view.content.whole.estimate
        if summary.cost_usd is not None and estimate is not None:
            ends = estimate.interval
            points.append(Point(summary.cost_usd, estimate.mean, ends.low, ends.high, entry.letter))
    if len({point.cost for point in points}) < 2:
        return None
    words = ", ".join(f"run {point.letter} {point.score:.1%} at {money_text(point.cost)}" for point in points)
    return scatter(points, "USD", f"Score against cost of each run: {words}")


def _warning(views: Sequence[RunView]) -> str:
    plans = [view.content.run.plan for view in views]
    if len({(plan.benchmark.id, plan.benchmark.version) for plan in plans}) > 1:
        return "These are runs of different benchmarks: their scores are not on one scale."
    if len({plan.pack_digest for plan in plans}) > 1:
        return "These are runs of different states of the pack (their digests differ): compare them with care."
    if len({tuple(task.id for task in plan.tasks) for plan in plans}) > 1:
        return "These runs are over different tasks of the pack: compare them on those they share."
    return ""
