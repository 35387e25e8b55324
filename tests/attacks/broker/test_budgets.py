"""Agents that want more than their budget: races, many attempts at once, hanging up before the bill."""

from __future__ import annotations

from collections import Counter

import anyio
import pytest
from tests.upstreams import KEY, SSE_HEAD, Agent, Asked, Send, agent_of, chunk, event, fine, reply

from securebench.egress.broker import BudgetLimits
from securebench.egress.broker.budget import Ledger
from securebench.egress.broker.upstream import Patience


def play(scene, *arguments, **options) -> None:
    async def main() -> None:
        async with agent_of(*arguments, **options) as agent:
            with anyio.fail_after(120):
                await scene(agent)

    anyio.run(main)


async def slow(asked: Asked, send: Send) -> None:
    await anyio.sleep(0.05)
    await fine(asked, send)


async def twenty_at_once(agent: Agent, **more: object) -> Counter[int]:
    statuses: Counter[int] = Counter()

    async def one() -> None:
        statuses[(await agent.post(agent.body(**more))).status_code] += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(one)
    return statuses


def test_twenty_requests_at_once_do_not_pass_a_budget_of_requests() -> None:
    async def scene(agent: Agent) -> None:
        assert await twenty_at_once(agent) == {200: 7, 403: 13}
        assert len(agent.asked) == 7
        assert agent.session.exhausted == "attempt.requests"

    play(scene, slow, attempt=BudgetLimits(requests=7))


def test_twenty_requests_at_once_pass_a_budget_of_tokens_by_less_than_one_request() -> None:
    async def scene(agent: Agent) -> None:
        statuses = await twenty_at_once(agent, max_tokens=5)
        used = agent.session.usage.tokens
        assert 40 <= used < 40 + 15  # each uses 15
        assert statuses == {200: 3, 403: 17}
        assert await agent.session.out_of_budget() == "attempt.tokens"

    play(scene, slow, attempt=BudgetLimits(tokens=40))


def test_they_would_pass_it_by_far_without_reservations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "has_room", lambda self: True)

    async def scene(agent: Agent) -> None:
        await twenty_at_once(agent, max_tokens=5)
        assert agent.session.usage.tokens > 40 + 15

    play(scene, slow, attempt=BudgetLimits(tokens=40))


def test_without_a_budget_all_twenty_pass() -> None:
    async def scene(agent: Agent) -> None:
        assert await twenty_at_once(agent, max_tokens=5) == {200: 20}
        assert agent.session.exhausted is None

    play(scene, slow)


def test_a_wide_budget_does_not_make_requests_wait_for_each_other() -> None:
    async def scene(agent: Agent) -> None:
        began = anyio.current_time()
        assert await twenty_at_once(agent, max_tokens=5) == {200: 20}
        assert anyio.current_time() - began < 30  # one after the other would take forty seconds at least

    async def slower(asked: Asked, send: Send) -> None:
        await anyio.sleep(2)
        await fine(asked, send)

    play(scene, slower, attempt=BudgetLimits(tokens=1_000_000))


def test_money_is_counted_by_the_prices_of_the_provider_file() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        usage = {
            "prompt_tokens": 1_000_000,
            "completion_tokens": 100_000,
            "prompt_tokens_details": {"cached_tokens": 400_000},
        }
        await send(reply({"usage": usage}))

    async def scene(agent: Agent) -> None:
        assert (await agent.post()).status_code == 200
        assert agent.session.usage.cost_usd == pytest.approx(0.6 * 1.25 + 0.4 * 0.125 + 0.1 * 10)
        assert (await agent.post()).status_code == 200
        refused = await agent.post()
        assert refused.status_code == 403
        assert refused.headers["x-should-retry"] == "false"
        assert agent.session.exhausted == "attempt.usd"
        assert agent.broker.exhausted is None

    play(scene, answer, attempt=BudgetLimits(usd=3.0))


def test_a_budget_of_the_run_holds_for_all_attempts_together() -> None:
    async def scene(agent: Agent) -> None:
        async with agent.broker.session("second") as second:
            for _ in range(2):
                assert (await agent.post()).status_code == 200
                assert (await second.ask(agent.access, "/chat/completions", agent.body())).status == 200
            assert agent.broker.exhausted == "run.requests"
            assert agent.session.exhausted is None  # it has not asked for more
            assert (await second.ask(agent.access, "/chat/completions", agent.body())).status == 403
            assert second.exhausted == "run.requests"
        async with agent.broker.session("third") as third:
            assert (await third.ask(agent.access, "/chat/completions", agent.body())).status == 403
        assert len(agent.asked) == 4

    play(scene, run=BudgetLimits(requests=4), attempt=BudgetLimits(requests=3))


def test_an_agent_that_hangs_up_before_the_bill_pays_an_estimate() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await send(SSE_HEAD + chunk(event({"choices": [{"delta": {"content": "word " * 200}}]})))
        await anyio.sleep(100)

    async def scene(agent: Agent) -> None:
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
                await stream.send(agent.request(agent.body(stream=True, max_tokens=10)))
                while b"word" not in await stream.receive():
                    pass
            while agent.session.usage.requests < len(agent.asked):
                await anyio.sleep(0.01)
        assert agent.session.usage.output_tokens >= 600
        assert agent.session.usage.estimated
        assert (await agent.post()).status_code == 403

    play(scene, answer, attempt=BudgetLimits(tokens=500))


def test_an_anthropic_stream_cut_after_its_first_counts_is_estimated_too() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        start = event({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}})
        await send(SSE_HEAD + chunk(start) + chunk(event({"delta": "word " * 200})))
        await anyio.sleep(100)

    async def scene(agent: Agent) -> None:
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            await stream.send(agent.request(agent.body(stream=True)))
            while b"word" not in await stream.receive():
                pass
        while not agent.session.exchanges:
            await anyio.sleep(0.01)
        usage = agent.session.usage
        assert (usage.input_tokens, usage.estimated) == (3, True)
        assert usage.output_tokens > 300

    play(scene, answer, provider="anthropic")


def test_a_model_without_a_price_is_refused_where_money_is_counted() -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.post(agent.body(model="claude-haiku-4-5-20251001"))).status_code == 200
        refused = await agent.post(agent.body(model="claude-haiku-99"))
        assert refused.status_code == 400
        assert "price" in refused.text
        assert KEY not in refused.text

    play(scene, provider="anthropic", models=["haiku"], attempt=BudgetLimits(usd=1))


def test_requests_that_are_refused_cost_nothing_of_the_budget() -> None:
    async def scene(agent: Agent) -> None:
        for _ in range(5):
            assert (await agent.post(agent.body(model="x"))).status_code == 400
            assert (await agent.post(key="x")).status_code == 401
        assert (await agent.post()).status_code == 200

    play(scene, attempt=BudgetLimits(requests=1))


def test_a_flood_of_refused_requests_is_written_down_in_bounded_space() -> None:
    async def scene(agent: Agent) -> None:
        for _ in range(2100):
            await agent.session.ask(agent.access, "/nothing", {})
        assert len(agent.session.exchanges) == 2000
        assert agent.session.dropped_exchanges == 100

    play(scene)


async def hang_up_after(agent: Agent, seconds: float, **more: object) -> None:
    """So long after the provider was asked."""
    before, asked = agent.session.usage.requests, len(agent.asked)

    async def ask() -> None:
        await agent.post(agent.body(**more))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        while len(agent.asked) == asked:
            await anyio.sleep(0.01)
        await anyio.sleep(seconds)
        tasks.cancel_scope.cancel()
    while agent.session.usage.requests == before and agent.session.exhausted is None:
        await anyio.sleep(0.01)


def test_an_agent_that_hangs_up_before_any_reply_pays_for_what_it_allowed_itself() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await anyio.sleep(100)

    async def scene(agent: Agent) -> None:
        for _ in range(4):
            await hang_up_after(agent, 0.2, max_completion_tokens=600)
        assert len(agent.asked) == 2
        assert agent.session.usage.output_tokens == 1200
        assert agent.session.usage.estimated
        assert agent.session.exhausted == "attempt.tokens"

    play(scene, answer, attempt=BudgetLimits(tokens=1000))


def test_an_agent_that_hangs_up_while_the_provider_is_busy_pays_for_no_output() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await send(reply({}, status=429, headers="retry-after: 60\r\n"))

    async def scene(agent: Agent) -> None:
        await hang_up_after(agent, 3, max_completion_tokens=600)
        assert agent.session.usage.output_tokens == 0
        assert agent.session.exhausted is None

    patience = Patience(tries=3, longest_wait_seconds=60)
    play(scene, answer, attempt=BudgetLimits(tokens=500), patience=patience)


def test_an_allowance_beyond_all_numbers_does_not_end_the_server() -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.post(agent.body(max_completion_tokens=10**400))).status_code == 200
        assert (await agent.post()).status_code == 200

    play(scene, attempt=BudgetLimits(usd=1000))
