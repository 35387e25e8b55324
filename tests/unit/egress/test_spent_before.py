"""What earlier starts of a run spent counts against its budget."""

from __future__ import annotations

import anyio
import pytest

from securebench.egress.broker import Broker, BudgetLimits, ModelAccess
from securebench.egress.providers.loading import load_provider

LIMITS = BudgetLimits(tokens=100, requests=10, usd=1.0)


@pytest.mark.parametrize(
    ("spent", "which"),
    [((0, 0, 0.0), None), ((10, 0, 0.0), "run.requests"), ((1, 100, 0.0), "run.tokens"), ((1, 1, 1.0), "run.usd")],
)
def test_a_budget_goes_on_where_it_stopped(spent: tuple[int, int, float], which: str | None) -> None:
    access = ModelAccess(load_provider("openai"), "gpt-5", key="sk-0123456789")

    async def main() -> str | None:
        async with Broker([access], run=LIMITS) as broker:
            broker.spent_before(*spent)
            return broker.exhausted

    assert anyio.run(main) == which
