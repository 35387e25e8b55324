"""The proxy lives as long as its listener, and no longer than it is wanted."""

from __future__ import annotations

import socket

import anyio
import pytest

from securebench.egress.decisions import EgressLog, Reason
from securebench.egress.proxy import serve_proxy
from securebench.egress.rules import EgressRules


def listener() -> socket.socket:
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    return server


def ask(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(65536), b""))


@pytest.mark.parametrize("data", [b"", b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", bytes(100_000)])
def test_a_connection_that_fails_does_not_end_the_proxy(data: bytes) -> None:
    async def main() -> None:
        log = EgressLog()
        with listener() as server:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve_proxy, server, EgressRules(), log)
                port = server.getsockname()[1]
                assert (await anyio.to_thread.run_sync(ask, port, data))[:9] == b"HTTP/1.1 "
                head = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n"
                assert b"not_allowed" in await anyio.to_thread.run_sync(ask, port, head)
                tasks.cancel_scope.cancel()
        assert log.decisions[-1].reason == Reason.NOT_ALLOWED
        assert len(log.decisions) == 2

    anyio.run(main)


def test_it_returns_when_its_listener_is_closed() -> None:
    async def main() -> None:
        server = listener()
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve_proxy, server, EgressRules(), EgressLog())
                await anyio.wait_all_tasks_blocked()
                with socket.create_connection(server.getsockname()):  # one that says nothing must not keep it
                    await anyio.sleep(0.05)
                    anyio.notify_closing(server)
                    server.close()

    anyio.run(main)


def test_it_returns_when_its_listener_was_closed_before() -> None:
    server = listener()
    server.close()
    anyio.run(serve_proxy, server, EgressRules(), EgressLog())
