"""Axes: values lie where they belong, ends and ticks are round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.reports.html.axis import SECONDS, SHARES, fitting, linear, logarithmic, tick_text

NUMBERS = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=20)


@given(NUMBERS)
def test_every_value_lies_between_the_ends_in_order(values: list[float]) -> None:
    for axis in (linear(values), logarithmic(values), fitting(values)):
        assert axis.low <= min(values) * 1.001
        assert axis.high >= max(values) * 0.999
        places = [axis.at(value) for value in sorted(values)]
        assert places == sorted(places)
        assert all(0 <= place <= 1 for place in places)
        assert 1 <= len(axis.ticks) <= 9
        assert all(axis.low * 0.999 <= tick <= axis.high * 1.001 for tick in axis.ticks)


@pytest.mark.parametrize(
    "values, ticks",
    [
        ([3, 97], (0, 20, 40, 60, 80, 100)),
        ([0.12, 0.31], (0, 0.1, 0.2, 0.3, 0.4)),
        ([-0.2, 0.1], (-0.2, -0.1, 0, 0.1)),
        ([5], (0, 1, 2, 3, 4, 5)),
        ([0], (0, 0.2, 0.4, 0.6, 0.8, 1)),
        ([], (0, 0.2, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_linear_ticks_are_round(values: list[float], ticks: tuple[float, ...]) -> None:
    assert linear(values).ticks == pytest.approx(ticks)


def test_wide_values_are_laid_out_by_their_ratios() -> None:
    axis = fitting([0.5, 3, 700])
    assert axis.log
    assert axis.ticks == pytest.approx((1, 10, 100, 1000))
    assert axis.at(10) - axis.at(1) == pytest.approx(axis.at(100) - axis.at(10))


@pytest.mark.parametrize("values", [[0, 3, 700], [10, 200], []])
def test_other_values_are_laid_out_by_their_differences(values: list[float]) -> None:
    assert not fitting(values).log


def test_shares_reach_from_nothing_to_all() -> None:
    assert [SHARES.at(value) for value in (-1, 0, 0.5, 1, 2)] == [0, 0, 0.5, 1, 1]


@pytest.mark.parametrize(
    "values, texts",
    [
        ([4, 97], ["0 s", "20 s", "40 s", "60 s", "80 s", "100 s"]),
        ([20, 130], ["0 s", "30 s", "60 s", "90 s", "120 s", "150 s"]),
        ([30, 170], ["0 min", "1 min", "2 min", "3 min"]),
        ([600, 4000], ["0 min", "20 min", "40 min", "60 min", "80 min"]),
        ([4000, 20000], ["0 h", "2 h", "4 h", "6 h"]),
        ([0.01, 0.04], ["0 ms", "10 ms", "20 ms", "30 ms", "40 ms"]),
        ([5, 700], ["5 s", "20 s", "1 min", "5 min", "20 min"]),
        ([20, 4000], ["20 s", "1 min", "5 min", "20 min", "1 h"]),
    ],
)
def test_times_are_round_on_a_clock(values: list[float], texts: list[str]) -> None:
    axis = fitting(values, SECONDS)
    assert [tick_text(axis, "s")(tick) for tick in axis.ticks] == texts


@given(NUMBERS)
def test_no_two_ticks_of_a_time_read_the_same(values: list[float]) -> None:
    axis = fitting(values, SECONDS)
    texts = [tick_text(axis, "s")(tick) for tick in axis.ticks]
    assert len(set(texts)) == len(texts) <= 9


def test_amounts_on_one_axis_have_the_same_digits() -> None:
    axis = linear([0, 0.09])
    assert [tick_text(axis, "USD")(tick) for tick in axis.ticks] == [
        "$ 0.00",
        "$ 0.02",
        "$ 0.04",
        "$ 0.06",
        "$ 0.08",
        "$ 0.10",
    ]
    axis = linear([0, 0.009])
    assert tick_text(axis, "USD")(axis.ticks[1]) == "$ 0.002"
    assert tick_text(linear([0, 4]), "tokens")(2) == "2"
