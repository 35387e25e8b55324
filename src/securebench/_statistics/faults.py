"""How attempts without a verdict are counted: never as the candidate's, and never forgotten.

An `error` is the host's fault and a `pending` response was judged by nobody. The score is over what was judged. That
is fair where faults strike at random; where they strike hard tasks, it is not, so the bounds say how far the score
could be off, whatever the missing verdicts would have been."""

from __future__ import annotations

from securebench._statistics.intervals import Interval


def score_bounds(score_sum: float, judged: int, unjudged: int) -> Interval | None:
    """The score if all unjudged attempts had failed, and if all had passed; None without any attempt."""
    attempts = judged + unjudged
    if attempts <= 0:
        return None
    return Interval(score_sum / attempts, (score_sum + unjudged) / attempts)
