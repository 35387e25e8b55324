"""When to come back: after about the time that what waits will take."""

from __future__ import annotations

import pytest

from securebench.serving.pace import Pace


def judged(pace: Pace, verdicts: int, each: float, begin: float) -> float:
    """So many verdicts on a host that gives one every `each` seconds; when the last one came."""
    pace.change(verdicts, begin)
    for number in range(1, verdicts + 1):
        pace.verdict(begin + number * each)
        pace.change(-1, begin + number * each)
    return begin + verdicts * each


@pytest.mark.parametrize(("each", "left", "seconds"), [(0.01, 300, 3), (0.5, 20, 10), (0.001, 5, 1), (5.0, 900, 60)])
def test_it_is_the_time_that_those_who_wait_will_take(each: float, left: int, seconds: int) -> None:
    pace = Pace()
    end = judged(pace, 400, each, begin=1000.0)
    pace.change(left, end)
    assert abs(pace.seconds_left(end) - seconds) <= 1


def test_time_without_work_does_not_count() -> None:
    pace = Pace()
    end = judged(pace, 50, 0.01, begin=0.0)
    end = judged(pace, 50, 0.01, begin=end + 3600)
    pace.change(200, end + 3600)
    assert pace.seconds_left(end + 3600) == 2


def test_last_verdicts_count_and_not_the_first() -> None:
    pace = Pace()
    end = judged(pace, 20, 10.0, begin=0.0)
    end = judged(pace, 300, 0.01, begin=end)
    pace.change(100, end)
    assert pace.seconds_left(end) <= 2


def test_stall_is_noticed_and_nothing_known_is_one_second() -> None:
    pace = Pace()
    pace.change(100, 0.0)
    assert pace.seconds_left(0.0) == 1
    end = judged(pace, 10, 0.01, begin=0.0)
    assert pace.seconds_left(end + 30) == 60
