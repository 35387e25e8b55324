"""The way of a request through the broker: real sockets on both sides."""

from __future__ import annotations

import json

import anyio
import httpx2
import pytest
from tests.upstreams import KEY, SSE_HEAD, Agent, Asked, Hangup, Send, agent_of, chunk, event, fine, reply

from securebench.egress.broker import BudgetLimits, Exchange, passage
from securebench.egress.broker.server import ServerLimits
from securebench.egress.broker.upstream import Patience
from securebench.egress.providers import load_provider_file


def play(scene, *arguments, **options) -> None:
    async def main() -> None:
        async with agent_of(*arguments, **options) as agent:
            with anyio.fail_after(120):
                await scene(agent)

    anyio.run(main)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_compatible"])
def test_a_request_reaches_the_provider_with_the_real_key_and_comes_back_metered(provider: str) -> None:
    async def scene(agent: Agent) -> None:
        response = await agent.post()
        assert response.status_code == 200
        assert response.json()["choices"][0]["message"]["content"] == "4"
        (asked,) = agent.asked
        shown = {asked.headers.get("authorization"), asked.headers.get("x-api-key")} - {None}
        assert shown == ({KEY} if provider == "anthropic" else {f"Bearer {KEY}"})
        assert agent.session.placeholder not in str(asked)
        assert asked.json == agent.body()
        usage = agent.session.usage
        assert (usage.requests, usage.input_tokens, usage.output_tokens, usage.estimated) == (1, 10, 5, False)
        (exchange,) = agent.session.exchanges
        assert (exchange.status, exchange.model, exchange.complete) == (200, agent.access.model, True)
        assert KEY not in json.dumps(exchange.as_json())

    play(scene, provider=provider)


def test_the_environment_of_an_agent_holds_addresses_and_placeholders_only() -> None:
    async def scene(agent: Agent) -> None:
        assert agent.session.environment(18000) == {
            "ANTHROPIC_API_KEY": agent.session.placeholder,
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:18000/anthropic",
        }

    play(scene, provider="anthropic")


def test_the_key_of_an_agent_may_come_in_either_header() -> None:
    async def scene(agent: Agent) -> None:
        body, place = json.dumps(agent.body()), agent.session.placeholder
        for headers in ({"x-api-key": place}, {"authorization": f"bearer {place}"}):
            assert (await agent.client.post(agent.url(), content=body, headers=headers)).status_code == 200

    play(scene)


@pytest.mark.parametrize("path", ["/v1/messages?beta=true", "/v1/messages/count_tokens?beta=true"])
def test_listed_queries_pass(path: str) -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.post(path=path)).status_code == 200
        assert agent.asked[0].target == path

    play(scene, provider="anthropic")


def test_models_can_be_listed_and_are_not_metered() -> None:
    async def scene(agent: Agent) -> None:
        headers = {"authorization": f"Bearer {agent.session.placeholder}"}
        for path in ("/models", "/models?client_version=0.166.0", "/models/gpt-5"):
            assert (await agent.client.get(agent.url(path), headers=headers)).status_code == 200
        assert (await agent.client.get(agent.url("/models/gpt-4o"), headers=headers)).status_code == 400
        assert agent.session.usage.tokens == 0
        assert agent.session.usage.requests == 3

    play(scene)


def test_a_stream_passes_event_by_event_while_the_provider_still_thinks() -> None:
    gate = anyio.Event()

    async def answer(asked: Asked, send: Send) -> None:
        await send(SSE_HEAD + chunk(event({"delta": "first"})))
        await gate.wait()
        await send(chunk(event({"delta": "second"})) + chunk(event({"usage": {"prompt_tokens": 7}})) + b"0\r\n\r\n")

    async def scene(agent: Agent) -> None:
        headers = {"authorization": f"Bearer {agent.session.placeholder}"}
        body = agent.body(stream=True)
        async with agent.client.stream("POST", agent.url(), json=body, headers=headers) as response:
            pieces = response.aiter_raw()
            assert b"first" in await anext(pieces)  # before the provider went on
            await anyio.sleep(3.5)  # longer than any deadline below: silence in a reply is not slowness of a client
            gate.set()
            assert b"second" in b"".join([piece async for piece in pieces])
        assert agent.session.usage.input_tokens == 7

    play(scene, answer, limits=ServerLimits(head_seconds=3, body_seconds=3, idle_seconds=3))


def test_a_stream_of_chat_completions_is_asked_to_tell_its_usage() -> None:
    async def scene(agent: Agent) -> None:
        await agent.post(agent.body(stream=True))
        await agent.post(agent.body(stream=True, stream_options={"include_usage": False, "other": 1}))
        await agent.post(agent.body())
        first, second, third = [asked.json.get("stream_options") for asked in agent.asked]
        assert (first, second, third) == ({"include_usage": True}, {"include_usage": True, "other": 1}, None)

    play(scene)


def test_requests_of_this_process_take_the_same_way() -> None:
    async def scene(agent: Agent) -> None:
        answered = await agent.session.ask(agent.access, "/chat/completions", agent.body())
        assert (answered.status, json.loads(answered.body)["id"]) == (200, "x")
        other = await agent.session.ask(agent.access, "/chat/completions", agent.body(model="gpt-4o"))
        unknown = await agent.session.ask(agent.access, "/files", agent.body())
        assert (other.status, unknown.status) == (400, 404)
        assert len(agent.asked) == 1
        assert [exchange.status for exchange in agent.session.exchanges] == [200, 400, 404]

    play(scene)


def test_a_provider_file_of_the_operator_is_enough_for_a_new_provider(tmp_path) -> None:
    text = """
name: mine
base_url: https://models.example/api
key: {env: MINE_KEY, header: x-api-key, scheme: ""}
agent: {key_env: MINE_KEY, base_url_env: MINE_URL, mount: /api}
request_headers: []
reply_headers: [content-type]
endpoints: [{method: POST, path: /generate, kind: chat, body: generate}]
bodies: {generate: {fields: [model, prompt]}}
error: {fault: "{message}"}
usage: {at: [meta], input: [read], output: [written], input_is_total: true}
prices: {big: {input: 1, output: 2}}
"""
    path = tmp_path / "mine.yaml"
    path.write_text(text)

    async def answer(asked: Asked, send: Send) -> None:
        await send(reply({"meta": {"read": 1_000_000, "written": 500_000}, "usage": {}}))

    async def scene(agent: Agent) -> None:
        body = {"model": "big", "prompt": "x"}
        assert (await agent.post(body, "/generate")).status_code == 200
        assert agent.asked[0].headers["x-api-key"] == KEY
        assert agent.session.usage.cost_usd == pytest.approx(2.0)
        refused = await agent.post(body | {"tools": []}, "/generate")
        assert "not allowed" in refused.json()["fault"]

    play(scene, answer, provider=load_provider_file(path), model="big")


def busy_first(statuses: list[int], headers: str = "") -> object:
    left = list(statuses)

    async def answer(asked: Asked, send: Send) -> None:
        if left:
            await send(reply({"error": "busy"}, left.pop(0), headers=headers))
        else:
            await fine(asked, send)

    return answer


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_busy_provider_is_asked_again(status: int) -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.post()).status_code == 200
        assert len(agent.asked) == 3
        (exchange,) = agent.session.exchanges
        assert exchange.retries == (str(status), str(status))
        assert agent.session.usage.requests == 1

    play(scene, busy_first([status, status]))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_other_errors_come_back_at_once(status: int) -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.post()).status_code == status
        assert len(agent.asked) == 1
        assert agent.session.usage.tokens == 0

    play(scene, busy_first([status]))


def test_a_provider_that_stays_busy_is_left_after_a_few_tries_and_its_answer_comes_back() -> None:
    async def scene(agent: Agent) -> None:
        response = await agent.post()
        assert (response.status_code, response.json()) == (429, {"error": "busy"})
        assert response.headers["retry-after"] == "0.01"
        assert len(agent.asked) == 3
        assert agent.session.unanswered

    play(scene, busy_first([429] * 9, "retry-after: 0.01\r\n"))


def test_retry_after_is_honoured_up_to_a_bound() -> None:
    patience = Patience(first_wait_seconds=0.5, longest_wait_seconds=60)
    assert patience.wait_seconds(1, "7") == 7
    assert patience.wait_seconds(1, "86400") == 60
    assert 0.5 <= patience.wait_seconds(1, "nonsense") <= 0.75
    assert 2 <= patience.wait_seconds(3, None) <= 3
    assert patience.wait_seconds(40, None) == 60


def test_a_provider_that_hangs_up_before_its_reply_is_asked_again_and_one_in_the_middle_is_not() -> None:
    calls = []

    async def answer(asked: Asked, send: Send) -> None:
        calls.append(1)
        if len(calls) == 2:
            await send(SSE_HEAD + chunk(event({"delta": "half"})))
        if len(calls) <= 2:
            raise Hangup
        await fine(asked, send)

    async def scene(agent: Agent) -> None:
        with pytest.raises(httpx2.RemoteProtocolError):
            await agent.post(agent.body(stream=True))
        assert len(calls) == 2
        (exchange,) = agent.session.exchanges
        assert exchange.retries == ("RemoteProtocolError",)
        assert not exchange.complete
        assert exchange.usage.estimated
        assert (await agent.post()).status_code == 200  # and it goes on serving

    play(scene, answer)


def test_a_provider_that_cannot_be_reached_is_said_in_its_own_shape() -> None:
    async def scene(agent: Agent) -> None:
        object.__setattr__(agent.access, "base_url", "http://127.0.0.1:1/v1")
        response = await agent.post()
        assert response.status_code == 502
        assert response.json()["error"]["type"] == "upstream_unavailable"
        assert agent.session.unanswered
        assert "cannot be reached" in (await agent.session.probe() or "")

    play(scene)


def test_a_provider_that_is_silent_for_too_long_is_not_asked_again() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await anyio.sleep(600)

    async def scene(agent: Agent) -> None:
        assert (await agent.post()).status_code == 502
        assert len(agent.asked) == 1

    play(scene, answer, patience=Patience(tries=3, silence_seconds=2))


def test_a_client_that_hangs_up_cancels_the_request_at_the_provider() -> None:
    began = anyio.Event()

    async def answer(asked: Asked, send: Send) -> None:
        await send(SSE_HEAD)
        began.set()
        while True:
            await send(chunk(event({"delta": "x"})))
            await anyio.sleep(0.01)

    async def scene(agent: Agent) -> None:
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            await stream.send(agent.request(agent.body(stream=True)))
            await began.wait()
        while not agent.simulator.hung_up:
            await anyio.sleep(0.01)
        (exchange,) = agent.session.exchanges
        assert not exchange.complete
        assert exchange.usage.estimated

    play(scene, answer)


def test_a_client_that_hangs_up_before_the_reply_cancels_as_well() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await anyio.sleep(600)

    async def scene(agent: Agent) -> None:
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            await stream.send(agent.request())
            while not agent.asked:
                await anyio.sleep(0.01)
        while not agent.session.exchanges:
            await anyio.sleep(0.01)
        assert agent.session.exchanges[0].duration_seconds < 120

    play(scene, answer)


def test_a_connection_serves_many_requests_one_after_the_other_also_when_they_come_at_once() -> None:
    async def scene(agent: Agent) -> None:
        ask = agent.request()
        got = await agent.raw(ask + ask + agent.request(headers="connection: close\r\n"), seconds=60)
        assert got.count(b"HTTP/1.1 200") == 3
        assert len(agent.asked) == 3

    play(scene)


def test_expect_100_continue_is_answered_before_the_body_is_sent() -> None:
    async def scene(agent: Agent) -> None:
        head, _, body = agent.request(headers="expect: 100-continue\r\n").partition(b"\r\n\r\n")
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            await stream.send(head + b"\r\n\r\n")
            assert (await stream.receive()).startswith(b"HTTP/1.1 100")
            await stream.send(body)
            assert (await stream.receive()).startswith(b"HTTP/1.1 200")

    play(scene)


def test_a_websocket_is_told_to_use_http() -> None:
    async def scene(agent: Agent) -> None:
        head = f"GET {agent.root}/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            await stream.send(head.encode())
            assert (await stream.receive()).startswith(b"HTTP/1.1 426")

    play(scene)


@pytest.mark.parametrize(
    "method, path, status", [("HEAD", "", 404), ("OPTIONS", "/responses", 405), ("DELETE", "/models/gpt-5", 405)]
)
def test_other_methods_are_refused_in_the_shape_of_the_provider(method: str, path: str, status: int) -> None:
    async def scene(agent: Agent) -> None:
        response = await agent.client.request(method, agent.url(path or "/"))
        assert response.status_code == status
        assert method == "HEAD" or response.json()["error"]["message"]
        assert agent.asked == []

    play(scene)


def test_a_caller_can_see_whole_exchanges_without_the_key() -> None:
    seen: list[tuple[Exchange, bytes, bytes]] = []

    async def scene(agent: Agent) -> None:
        await agent.post()
        await agent.post(agent.body(model="other"))
        (first, request, answer), (second, _, refusal) = seen
        assert json.loads(request) == agent.body()
        assert json.loads(answer)["id"] == "x"
        assert (first.status, second.status) == (200, 400)
        assert b"not allowed" in refusal
        assert KEY not in repr(seen)

    play(scene, on_exchange=lambda *exchange: seen.append(exchange))


def test_a_large_body_and_a_large_reply_pass_whole() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await send(reply({"size": len(asked.json["messages"][0]["content"]), "pad": "y" * 5_000_000}))

    async def scene(agent: Agent) -> None:
        response = await agent.post(agent.body(messages=[{"role": "user", "content": "x" * 3_000_000}]))
        assert response.json()["size"] == 3_000_000
        assert len(response.json()["pad"]) == 5_000_000

    play(scene, answer)


def test_time_that_is_over_cuts_a_running_stream_and_wakes_the_harness() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await send(SSE_HEAD + chunk(event({"delta": "x"})))
        await anyio.sleep(600)

    async def scene(agent: Agent) -> None:
        async with anyio.create_task_group() as tasks:
            woken: list[str] = []

            async def wait() -> None:
                woken.append(await agent.session.out_of_budget())

            tasks.start_soon(wait)
            with pytest.raises(httpx2.RemoteProtocolError):
                await agent.post(agent.body(stream=True))
        assert woken == ["attempt.seconds"]
        refused = await agent.post()
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "budget_exhausted")

    play(scene, answer, attempt=BudgetLimits(seconds=4))


def test_an_attempt_that_ends_in_time_has_not_run_out_of_it() -> None:
    async def main() -> None:
        async with agent_of(attempt=BudgetLimits(seconds=1)) as agent:
            agent.session.close()
            await anyio.sleep(1.1)
            assert agent.session.exhausted is None

    anyio.run(main)


def test_a_provider_that_says_nothing_is_found_out_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage, "PROBE_SECONDS", 0.2)

    async def answer(asked: Asked, send: Send) -> None:
        await anyio.sleep(600)

    async def scene(agent: Agent) -> None:
        assert not agent.session.unanswered
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.post)
            while not agent.asked:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        assert agent.session.unanswered
        assert "did not answer within 0.2 seconds" in (await agent.session.probe() or "")

    play(scene, answer)


def test_an_agent_that_uses_up_a_providers_patience_makes_no_outage() -> None:
    async def once(agent: Agent) -> None:
        assert [(await agent.post()).status_code for _ in range(2)] == [400, 429]
        assert not agent.session.unanswered

    async def often(agent: Agent) -> None:
        for _ in range(31):
            assert agent.session.unanswered is (agent.session.usage.requests > 0)
            await agent.post()
        assert not agent.session.unanswered

    play(once, busy_first([400, *[429] * 9]), patience=Patience(tries=1))
    play(often, busy_first([429] * 99), patience=Patience(tries=1))


@pytest.mark.parametrize(("asking", "faulty"), [(400, False), (403, True)])
def test_a_key_that_may_not_list_models_is_no_outage_unless_it_may_not_ask_either(asking: int, faulty: bool) -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await send(reply({}, status=403 if asked.method == "GET" else asking))

    async def scene(agent: Agent) -> None:
        assert (await agent.post()).status_code == asking
        assert agent.session.unanswered is faulty
        assert (await agent.session.probe() is not None) is faulty

    play(scene, answer)
