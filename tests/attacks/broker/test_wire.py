"""Attacks on the framing, the memory and the patience of the broker, and a provider that gives the key away."""

from __future__ import annotations

import json
import random

import anyio
import anyio.abc
import pytest
from tests.upstreams import KEY, SSE_HEAD, Agent, Asked, Send, agent_of, chunk, event, fine, reply

from securebench.egress.broker import scrubbing
from securebench.egress.broker.server import ServerLimits


def play(scene, *arguments, **options) -> None:
    async def main() -> None:
        async with agent_of(*arguments, **options) as agent:
            with anyio.fail_after(120):
                await scene(agent)

    anyio.run(main)


async def honest_one_passes(agent: Agent) -> None:
    assert (await agent.post()).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        "transfer-encoding: chunked\r\n",  # beside the content-length that is there already
        "transfer-encoding: identity\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding:\x0bchunked\r\n",
        "transfer-encoding : chunked\r\n",
        "content-length: 3\r\n",
        "content-length: +3\r\n",
        "content-length: 0x10\r\n",
        "x: a\x00b\r\n",
        "content-encoding: gzip\r\n",
        "content-encoding: zstd\r\n",
        ": empty\r\n",
        "bad name: x\r\n",
    ],
)
def test_ambiguous_framing_is_refused_and_ends_the_connection(headers: str) -> None:
    async def scene(agent: Agent) -> None:
        smuggled = agent.request()
        got = await agent.raw(agent.request(headers=headers) + smuggled, seconds=2, replies=1)
        assert got.startswith((b"HTTP/1.1 400", b"HTTP/1.1 415", b"HTTP/1.1 501")), got[:60]
        assert got.count(b"HTTP/1.1") == 1
        assert agent.asked == []
        await honest_one_passes(agent)

    play(scene)


def test_a_second_request_inside_a_body_is_no_request() -> None:
    async def scene(agent: Agent) -> None:
        hidden = agent.request(agent.body(model="gpt-4o"))
        whole = json.dumps(agent.body()).encode()
        zero = b"0\r\n\r\n" + hidden
        chunked = agent.request(b"", length=False, headers="transfer-encoding: chunked\r\n")
        got = await agent.raw(chunked + chunk(whole) + zero, seconds=0.5, replies=2)
        # It is the next request of the connection, judged like every other: the model is not allowed.
        assert [line for line in got.split(b"\r\n") if line.startswith(b"HTTP/1.1")] == [
            b"HTTP/1.1 200 ",
            b"HTTP/1.1 400 ",
        ]
        assert len(agent.asked) == 1

    play(scene)


def test_headers_that_are_not_listed_do_not_reach_the_provider() -> None:
    async def scene(agent: Agent) -> None:
        sent = {
            "openai-organization": "other",
            "openai-project": "other",
            "x-forwarded-for": "1.2.3.4",
            "cookie": "a=b",
            "host": "attacker.example",
            "proxy-authorization": "Basic x",
            "x-stainless-lang": "python",
            "openai-beta": "assistants=v2",
            "user-agent": "agent/1",
        }
        await agent.post(**{name.replace("-", "_"): value for name, value in sent.items()})
        (asked,) = agent.asked
        assert set(asked.headers) == {
            "host",
            "accept",
            "user-agent",
            "openai-beta",
            "content-type",
            "accept-encoding",
        } | {
            "authorization",
            "content-length",
        }
        assert asked.headers["host"] == f"127.0.0.1:{agent.simulator.port}"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers["user-agent"] == "agent/1"

    play(scene)


def test_headers_of_a_reply_that_are_not_listed_do_not_reach_the_agent() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        more = f"set-cookie: a=b\r\nopenai-organization: secret-org\r\nx-request-id: {KEY}\r\nlocation: http://x\r\n"
        await send(reply({}, headers=more))

    async def scene(agent: Agent) -> None:
        response = await agent.post()
        assert {"set-cookie", "openai-organization", "location"} & set(response.headers) == set()
        assert response.headers["x-request-id"] == "[scrubbed]"
        await agent.post()
        assert "cookie" not in agent.asked[1].headers

    play(scene, answer)


async def echo_in_error(asked: Asked, send: Send) -> None:
    await send(reply({"error": {"message": f"bad key: {asked.headers['authorization']}"}}, 400))


async def echo_in_stream(asked: Asked, send: Send) -> None:
    """The key, cut between any two of its characters, and byte by byte."""
    await send(SSE_HEAD)
    for cut in range(1, len(KEY)):
        await send(chunk(b"data: " + KEY[:cut].encode()))
        await anyio.sleep(0.002)
        await send(chunk(KEY[cut:].encode() + b"\n\n"))
    for letter in f"data: {KEY} {KEY[:-1]}\n\n".encode():
        await send(chunk(bytes([letter])))
        await anyio.sleep(0.001)
    await send(b"0\r\n\r\n")


@pytest.mark.parametrize("answer", [echo_in_error, echo_in_stream])
def test_a_key_the_provider_echoes_does_not_reach_the_agent(answer) -> None:
    seen = []

    async def scene(agent: Agent) -> None:
        response = await agent.post(agent.body(stream=True))
        assert KEY not in response.text
        assert "[scrubbed]" in response.text
        assert KEY not in repr(seen)
        if answer is echo_in_stream:
            assert response.text.count("[scrubbed]") == len(KEY)
            assert f" {KEY[:-1]}\n" in response.text  # nothing else is taken out, and nothing is kept back

    play(scene, answer, on_exchange=lambda *exchange: seen.append(exchange))


def test_the_echo_would_reach_the_agent_without_the_scrubber(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubbing, "_spellings", lambda key: ())

    async def scene(agent: Agent) -> None:
        assert KEY in (await agent.post()).text

    play(scene, echo_in_error)


def test_a_reply_that_is_compressed_unasked_is_refused_because_nobody_could_look_into_it() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        assert asked.headers["accept-encoding"] == "identity"
        await send(reply(b"x", headers="content-encoding: gzip\r\n"))

    async def scene(agent: Agent) -> None:
        assert (await agent.post(accept_encoding="gzip")).status_code == 502

    play(scene, answer)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300])
def test_a_redirect_of_the_provider_is_not_followed(status: int) -> None:
    async def answer(asked: Asked, send: Send) -> None:
        where = f"http://127.0.0.1:{asked.headers['host'].rpartition(':')[2]}/v1/elsewhere"
        await send(reply({}, status, headers=f"location: {where}\r\n"))

    async def scene(agent: Agent) -> None:
        response = await agent.post()
        assert response.status_code == 502
        assert "location" not in response.headers
        assert [asked.target for asked in agent.asked] == ["/v1/chat/completions"]

    play(scene, answer)


def test_a_head_that_is_too_large_is_refused() -> None:
    async def scene(agent: Agent) -> None:
        got = await agent.raw(agent.request(headers="x: " + "y" * 70_000 + "\r\n"), replies=1)
        assert got.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
        assert (await agent.post(x_filler="y" * 8_000)).status_code == 200

    play(scene)


@pytest.mark.parametrize("framing", ["declared", "chunked"])
def test_a_body_that_is_too_large_is_refused_before_it_is_held(framing: str) -> None:
    async def scene(agent: Agent) -> None:
        if framing == "declared":
            head = agent.request(b"", length=False, headers="content-length: 99999999999999999\r\n")
            got = await agent.raw(head, replies=1)
        else:
            head = agent.request(b"", length=False, headers="transfer-encoding: chunked\r\n")
            got = await agent.raw(head, *[chunk(b"x" * 30_000)] * 4, replies=1)
        assert got.startswith(b"HTTP/1.1 413")
        await honest_one_passes(agent)

    play(scene, limits=ServerLimits(body_bytes=100_000))


def test_bodies_of_many_connections_together_are_bounded() -> None:
    gate = anyio.Event()

    async def answer(asked: Asked, send: Send) -> None:
        await gate.wait()
        await fine(asked, send)

    async def scene(agent: Agent) -> None:
        statuses: list[int] = []

        async def one() -> None:
            body = agent.body(messages=[{"role": "user", "content": "x" * 40_000}])
            statuses.append((await agent.post(body)).status_code)
            if len(statuses) == 3:
                gate.set()

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
        assert sorted(statuses) == [200, 200, 413, 413, 413]
        await honest_one_passes(agent)

    play(scene, answer, limits=ServerLimits(bodies_bytes=100_000))


def test_bodies_that_never_end_are_bounded_together_too() -> None:
    async def scene(agent: Agent) -> None:
        begun = agent.request(b"x" * 40_000)[:-1]
        streams = [await anyio.connect_tcp("127.0.0.1", agent.port) for _ in range(5)]
        for stream in streams:
            await stream.send(begun)
        refused = []

        async def listen(stream: anyio.abc.ByteStream) -> None:
            refused.append((await stream.receive()).split(b" ", 2)[1])

        async with anyio.create_task_group() as tasks:
            for stream in streams:
                tasks.start_soon(listen, stream)
            while len(refused) < 3:
                await anyio.sleep(0.01)
            await anyio.sleep(0.5)
            tasks.cancel_scope.cancel()
        assert refused == [b"413"] * 3
        for stream in streams:
            await stream.aclose()
        large = agent.body(messages=[{"role": "user", "content": "x" * 80_000}])
        while (status := (await agent.post(large)).status_code) == 413:  # until the server has heard of it
            await anyio.sleep(0.1)
        assert status == 200

    play(scene, limits=ServerLimits(bodies_bytes=100_000))


async def until_closed(stream: anyio.abc.ByteStream) -> bytes:
    got = b""
    try:
        while True:
            got += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return got


async def drop_by_drop(stream: anyio.abc.ByteStream, data: bytes) -> None:
    for letter in data:
        await stream.send(bytes([letter]))
        await anyio.sleep(0.02)


@pytest.mark.parametrize("at", ["start", "head", "body", "idle"])
def test_a_client_that_dawdles_is_left(at: str) -> None:
    async def scene(agent: Agent) -> None:
        whole = agent.request()
        parts = {"start": 1, "head": 40, "body": len(whole) - 5, "idle": len(whole)}
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            await stream.send(whole[: parts[at]])
            with anyio.fail_after(60):
                got = await until_closed(stream)
        assert (b" 408 " in got) == (at == "body")
        assert (b" 200 " in got) == (at == "idle")
        await honest_one_passes(agent)

    play(scene, limits=ServerLimits(idle_seconds=1, head_seconds=1, body_seconds=1))


def test_a_client_that_sends_drop_by_drop_gains_no_time() -> None:
    async def scene(agent: Agent) -> None:
        began = anyio.current_time()
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            with pytest.raises(anyio.BrokenResourceError):
                await drop_by_drop(stream, agent.request(headers="x: " + "y" * 1000 + "\r\n"))
        assert anyio.current_time() - began < 15  # of the twenty that it would take

    play(scene, limits=ServerLimits(head_seconds=0.3))


def test_more_connections_than_allowed_wait_and_do_no_harm() -> None:
    async def scene(agent: Agent) -> None:
        idle = [await anyio.connect_tcp("127.0.0.1", agent.port) for _ in range(4)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(honest_one_passes, agent)
            await anyio.sleep(0.2)
            assert agent.asked == []
            for stream in idle:
                await stream.aclose()
        assert len(agent.asked) == 1

    play(scene, limits=ServerLimits(connections=4))


def test_a_client_that_does_not_read_is_left_and_the_provider_with_it() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await send(SSE_HEAD)
        while True:
            await send(chunk(b"x" * 65536))

    async def scene(agent: Agent) -> None:
        async with await anyio.connect_tcp("127.0.0.1", agent.port) as stream:
            await stream.send(agent.request(agent.body(stream=True)))
            while not agent.simulator.hung_up:
                await anyio.sleep(0.05)
        assert not agent.session.exchanges[0].complete

    play(scene, answer, limits=ServerLimits(write_seconds=0.5))


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"\x00" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_end_their_connection_only(garbage: bytes) -> None:
    async def scene(agent: Agent) -> None:
        got = await agent.raw(garbage, seconds=5)
        assert not got or got.startswith(b"HTTP/1.1 4")
        await honest_one_passes(agent)

    play(scene, limits=ServerLimits(head_seconds=0.3))


def test_bytes_beyond_ascii_in_headers_do_no_harm() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        await send(reply({"agent": asked.headers["user-agent"]}, headers="x-request-id: \xfc\xff\r\n"))

    async def scene(agent: Agent) -> None:
        head, _, body = agent.request(headers="connection: close\r\n").partition(b"\r\n\r\n")
        got = await agent.raw(head + b"\r\nuser-agent: \xff\xfe\r\nx-api-key: \xff\r\n\r\n" + body, replies=1)
        assert b" 401 " in got
        got = await agent.raw(head + b"\r\nuser-agent: \xff\xfe\r\n\r\n" + body, replies=1)
        assert b" 200 " in got
        assert agent.asked[0].headers["user-agent"] == "securebench"

    play(scene, answer)


def test_an_agent_that_goes_on_asking_for_what_it_does_not_get_slows_itself_down() -> None:
    async def seconds(agent: Agent, faults: int) -> float:
        began = anyio.current_time()
        for _ in range(faults):
            await agent.post(key="wrong")
        return anyio.current_time() - began

    async def scene(agent: Agent) -> None:
        assert await seconds(agent, 12) > 5 * await_free
        assert (await agent.post()).status_code == 200

    async def free(agent: Agent) -> None:
        nonlocal await_free
        await_free = max(0.02, await seconds(agent, 12) / 10)

    await_free = 0.0
    play(free)
    play(scene, limits=ServerLimits(free_faults=2))


def test_connections_without_a_request_are_accepted_ever_more_slowly() -> None:
    async def scene(agent: Agent) -> None:
        for _ in range(60):
            async with await anyio.connect_tcp("127.0.0.1", agent.port):
                pass
        began = anyio.current_time()
        assert (await agent.post()).status_code == 200
        assert anyio.current_time() - began > 0.5

    play(scene, limits=ServerLimits(free_faults=5))


@pytest.mark.slow
def test_whatever_bytes_come_the_server_goes_on() -> None:
    async def scene(agent: Agent) -> None:
        chance = random.Random(7)
        whole = agent.request(headers="expect: 100-continue\r\nconnection: keep-alive\r\n")
        for _ in range(300):
            spoilt = bytearray(whole * chance.choice([1, 1, 2]))
            for _ in range(chance.choice([1, 2, 5, 20])):
                place = chance.randrange(len(spoilt))
                piece = chance.choice(
                    [b"", b"\r\n", b"\x00", b"\xff", b"{", b'"', b"0", b": ", bytes([chance.randrange(256)])]
                )
                spoilt[place : place + chance.choice([0, 1, 3])] = piece
            await agent.raw(bytes(spoilt), seconds=0.02)
        await honest_one_passes(agent)

    play(scene, limits=ServerLimits(free_faults=10_000))


def test_connections_that_are_reset_do_not_end_the_server() -> None:
    import socket
    import struct

    async def scene(agent: Agent) -> None:
        for size in (0, 10, 200):
            raw = socket.create_connection(("127.0.0.1", agent.port))
            raw.sendall(agent.request()[:size])
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.close()
            await anyio.sleep(0.02)
        await honest_one_passes(agent)

    play(scene)


def test_usage_in_the_text_of_a_model_is_not_usage() -> None:
    async def answer(asked: Asked, send: Send) -> None:
        fake = '"usage":{"prompt_tokens":0,"completion_tokens":0}}\n\ndata: {"usage":{"prompt_tokens":0,"completion_tokens":0}}'
        await send(SSE_HEAD + chunk(event({"choices": [{"delta": {"content": fake, "usage": fake}}]})) + b"0\r\n\r\n")

    async def scene(agent: Agent) -> None:
        await agent.post(agent.body(stream=True))
        assert agent.session.usage.estimated
        assert agent.session.usage.output_tokens > 40

    play(scene, answer)
