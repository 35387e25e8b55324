"""The pages of the viewer itself: the list of runs, a run under way, and the choice of what to compare with."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from securebench.reports.html.axis import SHARES
from securebench.reports.html.document import Design, render
from securebench.reports.html.whiskers import whisker
from securebench.reports.view.library import Listed
from securebench.reports.words import money_text, share_text

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent
_LIST = Design(_HERE / "list.html.j2", (_HERE / "view.css",), (_HERE / "list.js",))
_LIVE = Design(_HERE / "live.html.j2", (_HERE / "view.css",), (_HERE / "live.js",), connect=True)
_CHOICE = Design(_HERE / "choice.html.j2", (_HERE / "view.css",))
_TOLD = Design(_HERE / "told.html.j2", (_HERE / "view.css",))

STATES = {
    "sealed": ("pending", "sealed"),
    "finished": ("pending", "not sealed"),
    "running": ("warning", "running"),
    "stopped": ("pending", "stopped"),
    "refused": ("failed", "not opened"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A run in a list."""

    run: Listed
    when: str
    ago: str
    score: str
    cost: str
    drawn: Markup | None
    mark: str
    state: str


def list_page(root: Path, runs: Sequence[Listed]) -> str:
    return render(_LIST, root=str(root), lines=[_line(run) for run in runs])


def live_page(run: Listed, state: dict[str, Any]) -> str:
    return render(_LIVE, run=run, state=state, score=_score(state["score"]))


def choice_page(run: Listed, others: Sequence[Listed]) -> str:
    """Those of the same benchmark first."""
    ordered = sorted(others, key=lambda other: other.benchmark != run.benchmark)
    return render(_CHOICE, run=run, lines=[_line(other) for other in ordered if other.id != run.id])


def told_page(title: str, text: str) -> str:
    """What there is to say where there is nothing to show."""
    return render(_TOLD, title=title, text=text)


def _line(run: Listed) -> Line:
    known = run.score is not None and run.low is not None and run.high is not None
    return Line(
        run,
        datetime.fromtimestamp(run.modified, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        _ago(time.time() - run.modified),
        _score(run.score),
        "" if run.cost is None else money_text(run.cost),
        whisker(SHARES, run.score, run.low, run.high) if known and run.score is not None else None,
        *STATES[run.state],
    )


def _score(score: float | None) -> str:
    return "–" if score is None else share_text(score)


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"
