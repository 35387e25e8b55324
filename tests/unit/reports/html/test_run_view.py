"""What is drawn of a run: tasks in fifths by what they cost, and only where there are fifths."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.reports.content import Content, content_of
from securebench.reports.html.report_page import report_page
from securebench.reports.html.run_view import _against, _cuts
from securebench.reports.runs import load_run
from securebench.testing.synthetic_run import SyntheticRun, write_run

Cost = Callable[[int], float | None]


def run_with(place: Path, cost: Cost, tasks: int = 50, **more: Any) -> Content:
    """A run whose tasks cost what `cost` says of their numbers."""

    def alter(record: dict[str, Any]) -> None:
        record["usage"]["models"]["cost_usd"] = cost(int(record["task_id"].rsplit("-", 1)[1]))

    return content_of(load_run(write_run(place / "run", SyntheticRun(tasks=tasks, attempts=1, alter=alter, **more))))


@pytest.mark.parametrize(
    "values, cuts",
    [
        (range(10), [0, 2, 4, 6, 8, 10]),
        (range(23), [0, 5, 9, 14, 18, 23]),
        ([0] * 3 + [*range(1, 8)], [0, 3, 4, 6, 8, 10]),
        (range(9), []),  # too few
        ([1] * 50, []),
        ([0] * 25 + [*range(1, 26)], []),  # half of them are the same
        ([*([1] * 10), *([2] * 10), *([3] * 10), *([4] * 10)], []),
        ([*([1] * 10), *([2] * 10), *([3] * 10), *([4] * 10), *([5] * 10)], [0, 10, 20, 30, 40, 50]),
        ([0.1 + 0.2] * 10 + [0.3] * 40, []),  # the same but for what adding up loses
    ],
)
def test_tasks_are_cut_between_different_values_alone(values: list[float], cuts: list[int]) -> None:
    assert _cuts(sorted(values)) == cuts


@given(st.lists(st.integers(0, 30), max_size=120))
def test_equal_values_are_never_cut_apart(values: list[int]) -> None:
    values.sort()
    cuts = _cuts(values)
    for start, end in pairwise(cuts):
        assert (end - start) * 10 >= len(values)
        assert end == len(values) or values[end - 1] < values[end]


def test_tasks_that_cost_nothing_are_counted(tmp_path: Path) -> None:
    against = _against(run_with(tmp_path, lambda number: 0.01 * (number // 10)))
    assert against is not None
    assert against.what == "cost"
    assert against.left_out == 0
    assert "$ 0.00" in against.words
    assert str(against.drawn).count("<circle") == 5


def test_equal_costs_make_no_fifths(tmp_path: Path) -> None:
    against = _against(run_with(tmp_path, lambda number: 0.02))
    assert against is not None
    assert against.what == "tokens"


def test_tasks_without_a_cost_are_left_out_and_counted(tmp_path: Path) -> None:
    content = run_with(tmp_path, lambda number: None if number % 5 == 0 else 0.01 * number)
    against = _against(content)
    assert against is not None
    assert against.left_out == 10
    assert "10 tasks are left out: without cost, or without a verdict." in report_page([content])
