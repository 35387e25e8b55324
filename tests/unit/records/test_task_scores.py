"""Scores by task: equal tasks are kept once and counted as often as there are."""

from __future__ import annotations

import pytest

from securebench.records._task_scores import TaskScores


def scores(**tasks: list[float]) -> TaskScores:
    kept = TaskScores()
    for name, attempts in tasks.items():
        for score in attempts:
            kept.add(name, score == 1.0, score)
    return kept


def test_variance_is_the_mean_over_tasks_with_several_attempts() -> None:
    assert scores(a=[0, 1], b=[0, 1], c=[0, 1], d=[1, 1], e=[1]).mean_variance() == pytest.approx(0.375)
    assert scores(a=[1], b=[0]).mean_variance() is None


def test_pass_at_k_counts_every_task() -> None:
    kept = scores(a=[0, 1], b=[0, 1], c=[0, 0], d=[1, 1])
    assert kept.pass_at_k(2, 2) == {"1": pytest.approx(0.5), "2": pytest.approx(0.75)}
    assert kept.pass_at_k(3, 3).keys() == {"1", "2"}
    assert kept.pass_at_k(1, 1) == {}


def test_with_uneven_attempts_k_ends_where_a_task_has_no_more() -> None:
    kept = scores(a=[0, 1, 1], b=[1])
    assert kept.pass_at_k(1, 3) == {"1": pytest.approx((2 / 3 + 1) / 2)}
    assert kept.pass_at_k(1, 1) == {}
