"""A second request inside the first, bodies of two lengths, and other ways to make two readers disagree."""

from __future__ import annotations

import random
import uuid
from contextlib import suppress
from urllib.parse import quote

import anyio
import pytest
from tests.attacks.egress import weak
from tests.attacks.egress.clients import ALLOWED, away, everything, plain_get, proxy, raw, status, tunnel
from tests.attacks.egress.lab import Lab, in_lab

from securebench.egress.decisions import Kind
from securebench.egress.rules import EgressLimits

OTHER = "other.lab.test"


def request(*fields: str, path: str = "/echo", method: str = "GET", rest: str = "") -> bytes:
    lines = [f"{method} http://{ALLOWED}{path} HTTP/1.1", f"Host: {ALLOWED}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n" + rest).encode()


def second(mark: str) -> str:
    return f"GET /{mark} HTTP/1.1\r\nHost: {OTHER}\r\nConnection: close\r\n\r\n"


def reached(lab: Lab, mark: str) -> list[str]:
    """The request lines of requests of their own that carry the mark."""
    return [hit["line"] for hit in lab.hits("public") if mark in hit["line"]]


SMUGGLED = {
    "after a request without a body": lambda s: request(rest=s),
    "after a request that closes": lambda s: request("Connection: close", rest=s),
    "after a body": lambda s: request("Content-Length: 2", method="POST", rest="ok" + s),
    "after a chunked body": lambda s: request(
        "Transfer-Encoding: chunked", method="POST", rest=f"2\r\nok\r\n0\r\n\r\n{s}"
    ),
    "length and chunks": lambda s: request(
        "Content-Length: 5", "Transfer-Encoding: chunked", method="POST", rest=f"0\r\n\r\n{s}"
    ),
    "chunks and length": lambda s: request(
        "Transfer-Encoding: chunked", f"Content-Length: {len(s) + 5}", method="POST", rest=f"0\r\n\r\n{s}"
    ),
    "two lengths": lambda s: request(f"Content-Length: {len(s)}", "Content-Length: 0", method="POST", rest=s),
    "a length that is a list": lambda s: request(f"Content-Length: 0, {len(s)}", method="POST", rest=s),
    "an odd coding": lambda s: request("Transfer-Encoding: xchunked", "Content-Length: 0", method="POST", rest=s),
    "a space before the colon": lambda s: request("Content-Length : 0", method="POST", rest=s),
    "a folded field": lambda s: request("X: 1\r\n Content-Length: 0", method="POST", rest=s),
    "a bare line feed": lambda s: request(f"X: 1\n\n{s}"),
    "a bare carriage return": lambda s: request(f"X: 1\r\r{s}"),
    "in an upgrade": lambda s: request("Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AA", rest=s),
    "in a connect": lambda s: (
        f"CONNECT {ALLOWED}:443 HTTP/1.1\r\nHost: {ALLOWED}\r\nContent-Length: 9\r\n\r\n{s}".encode()
    ),
    "a line end in the address": lambda s: request(path=f"/x HTTP/1.1\r\nHost: x\r\n\r\n{s}"),
}


@pytest.mark.parametrize("case", SMUGGLED)
@in_lab
async def test_a_smuggled_request_never_gets_out(lab: Lab, case: str) -> None:
    mark = uuid.uuid4().hex
    async with proxy([ALLOWED, OTHER]) as running:
        reply = await away(raw, running.port, SMUGGLED[case](second(mark)))
        assert status(reply) in (400, 403)
        if running.log.count(Kind.ALLOWED):  # itself in order, and on its way when what follows it was seen
            await running.ended()
    refused = running.reasons() + running.reasons(Kind.ENDED)
    assert reached(lab, mark) == []
    assert set(refused) <= {"pipelined", "framing", "malformed", "upgrade", "host_mismatch"}
    assert refused


@pytest.mark.parametrize(
    "case",
    ["after a request without a body", "after a body", "length and chunks", "two lengths", "an odd coding"],
)
@in_lab
async def test_control_where_bytes_are_passed_on_it_gets_out(lab: Lab, case: str) -> None:
    mark = uuid.uuid4().hex
    weak.passes_plain_bytes_on()
    async with proxy([ALLOWED, OTHER]) as running:
        await away(raw, running.port, SMUGGLED[case](second(mark)))
    assert reached(lab, mark)


@in_lab
async def test_what_gets_out_is_framed_by_the_proxy(lab: Lab) -> None:
    mark = uuid.uuid4().hex
    async with proxy() as running:
        fields = ("Transfer-Encoding: chunked", "X-Hop: 1", "Connection: X-Hop, keep-alive", "Proxy-Authorization: x")
        data = request(*fields, path=f"/{mark}", method="POST", rest="4;ext=1\r\nabcd\r\n0\r\nX-Trailer: 1\r\n\r\n")
        assert status(await away(raw, running.port, data)) == 200
    [hit] = [hit for hit in lab.hits("public") if mark in hit["line"]]
    assert hit["line"] == f"POST /{mark} HTTP/1.1"
    assert hit["body"] == "4\r\nabcd\r\n0\r\n\r\n"
    assert hit["fields"] == [["host", ALLOWED], ["connection", "close"], ["transfer-encoding", "chunked"]]


@in_lab
async def test_another_host_in_the_host_field_is_refused(lab: Lab) -> None:
    mark = uuid.uuid4().hex
    async with proxy([ALLOWED, OTHER]) as running:
        line = f"GET http://{ALLOWED}/{mark} HTTP/1.1\r\nHost: {OTHER}\r\n\r\n".encode()
        assert status(await away(raw, running.port, line)) == 403
    assert running.reasons() == ["host_mismatch"]
    assert reached(lab, mark) == []


REPLIES = {
    "not http": "hello",
    "nothing": "",
    "a switch of protocols": "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw",
    "a login for the proxy": "HTTP/1.1 407 Proxy\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n",
    "two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a head without an end": "HTTP/1.1 200 OK\r\nX: " + "y" * 4000,
    "an end too soon": "HTTP/1.1 200",
}


@pytest.mark.parametrize("case", REPLIES)
@in_lab
async def test_a_reply_out_of_form_does_not_reach_the_client(lab: Lab, case: str) -> None:
    async with proxy() as running:
        reply = await away(plain_get, running.port, ALLOWED, "/raw?" + quote(REPLIES[case], safe=""))
        assert status(reply) == 502
        assert b"bad_reply" in reply
        await running.ended()
    assert [decision.reason for decision in running.log.decisions if decision.kind is Kind.ENDED] == ["bad_reply"]


@in_lab
async def test_a_long_request_is_answered_while_it_is_sent(lab: Lab) -> None:
    async with proxy() as running:
        data = request("Content-Length: 300000", "Expect: 100-continue", method="POST", rest="x" * 300000)
        reply = await away(raw, running.port, data)
        assert reply.startswith(b"HTTP/1.1 100")
        assert b"HTTP/1.1 200" in reply
        [ended] = await running.ended()
    assert ended.bytes_up > 300000


RELAYS = [
    "127.0.0.1:{port}",
    "localhost:{port}",
    "[::1]:{port}",
    "0.0.0.0:{port}",
    "loop.lab.test:{port}",
    "10.0.0.5:18461",
]


@pytest.mark.parametrize("target", RELAYS)
@in_lab
async def test_the_proxy_is_no_relay_to_itself_or_its_neighbours(lab: Lab, target: str) -> None:
    async with proxy([ALLOWED, "loop.lab.test"]) as other, proxy([ALLOWED, "loop.lab.test"]) as running:
        for port in (running.port, other.port):
            where = target.format(port=port)
            line = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode()
            assert status(await away(raw, running.port, line)) == 403
            line = f"GET http://{where}/ HTTP/1.1\r\nHost: {where}\r\n\r\n".encode()
            assert status(await away(raw, running.port, line)) == 403
        assert other.log.decisions == ()


@in_lab
async def test_control_where_nothing_is_judged_it_is_a_relay(lab: Lab) -> None:
    weak.takes_any_spelling()
    weak.allows_every_name()
    weak.vets_no_address()
    weak.reads_no_hello()

    def nested(port: int, through: int) -> bytes:
        _, sock = tunnel(port, f"127.0.0.1:{through}")
        with sock:
            sock.sendall(request())
            return everything(sock)

    async with proxy() as other, proxy(resolve=weak.look_up) as running:
        assert b'"tag": "public"' in await away(nested, running.port, other.port)
        assert other.log.count(Kind.ALLOWED) == 1


REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
POST = request("Transfer-Encoding: chunked", method="POST", rest="5\r\nhello\r\n0\r\n\r\n")


def damaged(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed))
        changed[at : at + chance.randint(0, 2)] = bytes([chance.choice(b"\r\n :0159;aA\0\xff")])
    return bytes(changed)


@pytest.mark.parametrize("seed", range(3))
@in_lab
async def test_damaged_requests_and_replies_do_not_end_the_proxy(lab: Lab, seed: int) -> None:
    chance = random.Random(seed)
    limits = EgressLimits(connections=1000, request_seconds=0.2, idle_seconds=0.2)
    async with proxy(limits=limits) as running:

        async def one(reply: bytes, post: bytes) -> None:
            await away(plain_get, running.port, ALLOWED, "/raw?" + quote(reply, safe=""))
            with suppress(ConnectionError):
                await away(raw, running.port, post)

        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(one, damaged(chance, REPLY), damaged(chance, POST))
        assert status(await away(plain_get, running.port)) == 200
