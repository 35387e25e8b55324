"""Numbers as people read them."""

from __future__ import annotations

import pytest

from securebench.reports.words import amount_text, money_text, seconds_text, share_text, size_text


@pytest.mark.parametrize(
    "seconds, text",
    [
        *((0, "0 s"), (0.004, "4 ms"), (0.2, "0.2 s"), (1, "1 s"), (9.44, "9.4 s"), (10, "10 s"), (59.6, "60 s")),
        *((100, "1.7 min"), (120, "2 min"), (600, "10 min"), (3600, "60 min"), (12000, "3.3 h"), (86400, "24 h")),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    "usd, text",
    [
        *((0, "$ 0.00"), (12.4, "$ 12.40"), (1234.5, "$ 1,234.50"), (0.1, "$ 0.10"), (0.04, "$ 0.040")),
        *((0.0031, "$ 0.0031"), (0.000059, "$ 0.000059"), (1e-12, "$ 1.0e-12")),
    ],
)
def test_money(usd: float, text: str) -> None:
    assert money_text(usd) == text


@pytest.mark.parametrize(
    "number, text", [(0, "0"), (7.5, "7.5"), (812, "812"), (1000, "1 k"), (12_345, "12.3 k"), (4.6e6, "4.6 M")]
)
def test_amounts(number: float, text: str) -> None:
    assert amount_text(number) == text


def test_shares() -> None:
    assert share_text(0.62849) == "62.8 %"


@pytest.mark.parametrize(
    "size, text",
    [(0, "0 bytes"), (1, "1 byte"), (850, "850 bytes"), (12_400, "12 kB"), (999_600, "1 MB"), (1_550_000, "1.6 MB")],
)
def test_size(size: int, text: str) -> None:
    assert size_text(size) == text
