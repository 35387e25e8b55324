"""Listeners that are closed while somebody is about to wait for them."""

from __future__ import annotations

import socket

import anyio

from securebench._sockets import accept_each


async def _handle(connection: socket.socket) -> None:
    await anyio.sleep(0)


def test_listener_that_is_closed_during_a_pause_ends_the_accepting() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)

            async def pause() -> None:
                listener.close()

            with anyio.fail_after(30):
                await accept_each(listener, 1, _handle, pause)

    anyio.run(main)
