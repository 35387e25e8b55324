"""Budgets end what they bound and nothing else; slow and silent connections hurt only themselves."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress

import anyio
import pytest
from tests.attacks.egress import weak
from tests.attacks.egress.clients import ALLOWED, away, body, everything, plain_get, proxy, status, tls_get, tunnel
from tests.attacks.egress.lab import Lab, in_lab

from securebench.egress.decisions import Kind
from securebench.egress.rules import EgressLimits

MIB = 1024 * 1024


@pytest.mark.parametrize("get", ["tls", "plain"])
@in_lab
async def test_bytes(lab: Lab, get: str) -> None:
    async with proxy(limits=EgressLimits(bytes=MIB)) as running:
        fetch = (tls_get, running.port, lab.ca, ALLOWED) if get == "tls" else (plain_get, running.port, ALLOWED)
        got = 0
        with suppress(OSError):  # TLS notices that it was cut off
            got = len(await away(*fetch, f"/big?n={8 * MIB}"))  # type: ignore[arg-type]
        [ended] = await running.ended()
        assert ended.reason == "bytes_spent"
        assert got <= MIB
        assert ended.bytes_up + ended.bytes_down <= MIB
        assert status(await away(plain_get, running.port)) == 403
    assert running.reasons() == ["bytes_spent"]


@pytest.mark.parametrize("get", ["tls", "plain"])
@in_lab
async def test_control_with_a_larger_budget_or_none_all_bytes_come(lab: Lab, get: str) -> None:
    if get == "tls":
        weak.counts_no_bytes()
    async with proxy(limits=EgressLimits(bytes=MIB if get == "tls" else 9 * MIB)) as running:
        fetch = (tls_get, running.port, lab.ca, ALLOWED) if get == "tls" else (plain_get, running.port, ALLOWED)
        assert len(await away(*fetch, f"/big?n={8 * MIB}")) > 8 * MIB  # type: ignore[arg-type]


@in_lab
async def test_connections(lab: Lab) -> None:
    async with proxy(limits=EgressLimits(connections=2)) as running:
        replies = [status(await away(plain_get, running.port)) for _ in range(4)]
        assert (await away(tls_get, running.port, lab.ca)).startswith(b"403")
    assert replies == [200, 200, 403, 403]
    assert running.reasons() == ["connections_spent"] * 3


@in_lab
async def test_control_with_more_connections_all_are_answered(lab: Lab) -> None:
    async with proxy(limits=EgressLimits(connections=4)) as running:
        assert [status(await away(plain_get, running.port)) for _ in range(4)] == [200] * 4


@in_lab
async def test_refused_requests_use_up_no_connections(lab: Lab) -> None:
    async with proxy(limits=EgressLimits(connections=1)) as running:
        for _ in range(5):
            assert status(await away(plain_get, running.port, "x.evil.test")) == 403
        assert status(await away(plain_get, running.port)) == 200


@in_lab
async def test_seconds_of_the_whole_attempt(lab: Lab) -> None:
    async with proxy(limits=EgressLimits(seconds=3)) as running:
        began = time.monotonic()
        with suppress(OSError):  # OpenSSL may take the cut for an ordinary end
            await away(tls_get, running.port, lab.ca, ALLOWED, "/slow?n=300&gap=0.1")
        assert time.monotonic() - began < 25
        assert [ended.reason for ended in await running.ended()] == ["seconds_spent"]
        assert status(await away(plain_get, running.port)) == 403
    assert running.reasons() == ["seconds_spent"]


@in_lab
async def test_an_idle_connection_is_ended(lab: Lab) -> None:
    async with proxy(limits=EgressLimits(idle_seconds=1)) as running:
        assert status(await away(plain_get, running.port, ALLOWED, "/hold")) == 504
        assert [ended.reason for ended in await running.ended()] == ["idle"]


@pytest.mark.parametrize("get", ["tls", "plain"])
@in_lab
async def test_a_slow_stream_with_gaps_survives_and_arrives_as_it_is_sent(lab: Lab, get: str) -> None:
    """Longer than every time limit but that for a connection on which nothing moves."""
    async with proxy(limits=EgressLimits(idle_seconds=10, request_seconds=3)) as running:
        fetch = (tls_get, running.port, lab.ca, ALLOWED) if get == "tls" else (plain_get, running.port, ALLOWED)
        reply = await away(*fetch, "/slow?n=4&gap=1.2")  # type: ignore[arg-type]
        assert reply.count(b"part") == 4
        assert reply.endswith(b"0\r\n\r\n")
        [ended] = await running.ended()
    assert ended.reason == "closed"
    assert ended.seconds > 4


@in_lab
async def test_a_reply_is_passed_on_piece_by_piece(lab: Lab) -> None:
    def first_piece(port: int) -> float:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
            sock.sendall(f"GET http://{ALLOWED}/slow?n=2&gap=40 HTTP/1.1\r\nHost: {ALLOWED}\r\n\r\n".encode())
            began, data = time.monotonic(), b""
            while b"part0" not in data:
                data += sock.recv(1000)
            return time.monotonic() - began

    async with proxy() as running:
        assert await away(first_piece, running.port) < 20


@in_lab
async def test_a_reader_that_does_not_read_stops_the_sender(lab: Lab) -> None:
    """Nothing is kept for it: what was taken from upstream is what fits into the sockets between."""
    async with proxy() as running:
        with socket.create_connection(("127.0.0.1", running.port)) as sock:
            sock.sendall(f"GET http://{ALLOWED}/big?n={256 * MIB} HTTP/1.1\r\nHost: {ALLOWED}\r\n\r\n".encode())
            with anyio.fail_after(60):
                while not running.log.count(Kind.ALLOWED):
                    await anyio.sleep(0.01)
            await anyio.sleep(0.7)
        [ended] = await running.ended()
    assert ended.reason == "reset"
    assert ended.bytes_down < 32 * MIB


def half_open(port: int, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(count)]


@in_lab
async def test_a_flood_of_silent_connections_starves_nobody(lab: Lab) -> None:
    async with proxy() as running:
        silent = await away(half_open, running.port, 300)
        began = time.monotonic()
        assert body(await away(tls_get, running.port, lab.ca))["tag"] == "public"
        assert time.monotonic() - began < 8
        for sock in silent:
            sock.close()


@in_lab
async def test_control_where_nobody_is_turned_away_the_flood_does(lab: Lab) -> None:
    weak.turns_nobody_away()
    async with proxy() as running:
        silent = await away(half_open, running.port, 200)
        with pytest.raises(OSError, match="timed out"):
            await away(impatient, running.port)
        for sock in silent:
            sock.close()


def impatient(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=1) as sock:
        sock.sendall(f"GET http://{ALLOWED}/ HTTP/1.1\r\nHost: {ALLOWED}\r\n\r\n".encode())
        sock.recv(1)


@in_lab
async def test_a_flood_of_tunnels_without_a_hello_starves_nobody(lab: Lab) -> None:
    async with proxy(limits=EgressLimits(open=4)) as running:
        silent = [(await away(tunnel, running.port, f"{ALLOWED}:443"))[1] for _ in range(100)]
        before = len(lab.hits("tcp"))
        assert body(await away(tls_get, running.port, lab.ca))["tag"] == "public"
        assert len(lab.hits("tcp")) == before + 1  # those without a hello were never dialled for
        for sock in silent:
            sock.close()


@in_lab
async def test_more_than_may_be_open_wait_for_their_turn(lab: Lab) -> None:
    done: list[int] = []
    async with proxy(limits=EgressLimits(open=2)) as running:

        async def one() -> None:
            done.append(status(await away(plain_get, running.port, ALLOWED, "/slow?n=1&gap=0.2")))

        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(one)
    assert done == [200] * 6


@in_lab
async def test_a_request_that_trickles_in_is_given_up(lab: Lab) -> None:
    def trickle(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
            sock.sendall(b"GET http://")
            return everything(sock)

    async with proxy(limits=EgressLimits(request_seconds=0.3)) as running:
        assert status(await away(trickle, running.port)) == 408
    assert running.reasons() == ["too_slow"]


@in_lab
async def test_either_side_of_a_tunnel_may_finish_first(lab: Lab) -> None:
    def half_closed(port: int) -> bytes:
        _, sock = tunnel(port, f"{ALLOWED}:443")
        with ssl.create_default_context(cafile=str(lab.ca)).wrap_socket(sock, server_hostname=ALLOWED) as secured:
            secured.sendall(f"GET /slow?n=2&gap=0.3 HTTP/1.1\r\nHost: {ALLOWED}\r\nConnection: close\r\n\r\n".encode())
            socket.socket.shutdown(secured, socket.SHUT_WR)
            return everything(secured)

    async with proxy() as running:
        assert (await away(half_closed, running.port)).count(b"part") == 2
        assert [ended.reason for ended in await running.ended()] == ["closed"]


@in_lab
async def test_connections_that_are_open_when_the_attempt_ends_are_written_down(lab: Lab) -> None:
    with socket.socket() as sock:
        async with proxy() as running:
            sock.connect(("127.0.0.1", running.port))
            sock.sendall(f"GET http://{ALLOWED}/hold HTTP/1.1\r\nHost: {ALLOWED}\r\n\r\n".encode())
            with anyio.fail_after(60):
                while not running.log.count(Kind.ALLOWED):
                    await anyio.sleep(0.01)
    assert running.reasons(Kind.ENDED) == ["stopped"]
