"""The ledger of a budget, without clock and network."""

from __future__ import annotations

import anyio
import pytest

from securebench.egress.broker.budget import (
    AttemptBudget,
    BudgetExhausted,
    BudgetLimits,
    Ledger,
    Reservation,
    RunBudget,
)

WANTED = Reservation(tokens=60, usd=0.6)


@pytest.mark.parametrize(
    "limits, expected",
    [
        (BudgetLimits(), None),
        (BudgetLimits(tokens=41), None),
        (BudgetLimits(tokens=40), "attempt.tokens"),
        (BudgetLimits(usd=0.4), "attempt.usd"),
        (BudgetLimits(usd=0.41), None),
        (BudgetLimits(requests=1), "attempt.requests"),
        (BudgetLimits(requests=2), None),
        (BudgetLimits(seconds=9), "attempt.seconds"),
        (BudgetLimits(seconds=11), None),
    ],
)
def test_a_ledger_tells_which_limit_is_reached(limits: BudgetLimits, expected: str | None) -> None:
    ledger = Ledger("attempt", limits, started=100)
    ledger.reserve(WANTED)
    ledger.settle(WANTED, 40, 0.4)
    assert ledger.used_up(now=110) == expected


def test_what_is_reserved_is_not_spent_but_leaves_no_room() -> None:
    ledger = Ledger("attempt", BudgetLimits(tokens=100), started=0)
    assert ledger.has_room()
    ledger.reserve(WANTED)
    assert ledger.has_room()  # 40 are left: one more may begin
    ledger.reserve(WANTED)
    assert not ledger.has_room()
    assert ledger.used_up(0) is None
    ledger.settle(WANTED, 10, 0)
    assert ledger.has_room()
    ledger.settle(WANTED, 95, 0)
    assert ledger.used_up(0) == "attempt.tokens"


def test_a_request_waits_for_others_and_is_refused_only_when_the_rest_is_spent() -> None:
    async def main() -> list[str]:
        run = RunBudget(BudgetLimits(tokens=100), anyio.current_time())
        first, second = (AttemptBudget(BudgetLimits(), run, anyio.current_time()) for _ in range(2))
        said: list[str] = []

        async def later() -> None:
            try:
                await second.admit(WANTED)
                said.append("admitted")
                second.settle(WANTED, 50, 0)
                await second.admit(WANTED)
            except BudgetExhausted as error:
                said.append(error.budget)

        large = Reservation(tokens=100, usd=0)
        async with anyio.create_task_group() as tasks:
            await first.admit(large)
            tasks.start_soon(later)
            await anyio.sleep(0.05)
            assert said == []  # all is reserved, nothing is spent
            first.settle(large, 60, 0)
        return said

    assert anyio.run(main) == ["admitted", "run.tokens"]


def test_waiting_ends_when_the_time_is_over() -> None:
    async def main() -> str:
        run = RunBudget(BudgetLimits(), anyio.current_time())
        budget = AttemptBudget(BudgetLimits(tokens=1, seconds=0.5), run, anyio.current_time())
        await budget.admit(WANTED)
        with pytest.raises(BudgetExhausted) as caught:
            await budget.admit(WANTED)
        return caught.value.budget

    assert anyio.run(main) == "attempt.seconds"
