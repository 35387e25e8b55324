"""The relay between a caller's sockets and the client's pipes, with a plain program in the client's place."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from securebench._proc import Process, start
from securebench.sandboxes._docker.channels import Relay


@asynccontextmanager
async def _client(
    script: str, numbers: tuple[int, ...]
) -> AsyncIterator[tuple[socket.socket, Relay, Process, list[str]]]:
    ours, theirs = socket.socketpair()
    hangups: list[str] = []
    relay = Relay(numbers)
    relay.attach(dict.fromkeys(numbers, theirs), lambda: hangups.append("hung up"))
    stdin, stdout = relay.inside(subprocess.DEVNULL, subprocess.DEVNULL)
    process = start(["/bin/sh", "-c", script], env={}, stdin=stdin, stdout=stdout)
    relay.close_inside()
    try:
        with ours:
            ours.setblocking(False)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(relay.carry)
                yield ours, relay, process, hangups
                tasks.cancel_scope.cancel()
    finally:
        await process.close()
        relay.close()


async def _all(ours: socket.socket, count: int) -> bytes:
    data = b""
    with anyio.fail_after(60):
        while len(data) < count:
            await anyio.wait_readable(ours)
            data += ours.recv(65536)
    return data


def test_input_is_the_channel_and_its_end_arrives() -> None:
    async def main() -> bytes:
        async with _client("cat; echo done", (0, 1)) as (ours, relay, process, _):
            ours.send(b"line\n")
            ours.shutdown(socket.SHUT_WR)
            with anyio.fail_after(60):
                await process.wait()
                await relay.delivered()
            return await _all(ours, 10)

    assert anyio.run(main) == b"line\ndone\n"


def test_caller_that_does_not_read_holds_nobody_up_once_dropped() -> None:
    async def main() -> bool:
        async with _client("head -c 5000000 /dev/zero", (1,)) as (_, relay, process, hangups):
            with anyio.move_on_after(0.5) as waiting:
                await process.wait()
            assert waiting.cancelled_caught, "the control: it is held up"
            relay.drop()
            with anyio.fail_after(60):
                assert await process.wait() == 0
                await relay.delivered()
            return not hangups

    assert anyio.run(main)


def test_caller_that_hangs_up_is_told_once_and_the_client_lives_on() -> None:
    async def main() -> tuple[int, list[str]]:
        async with _client("head -c 5000000 /dev/zero", (1,)) as (ours, relay, process, hangups):
            ours.close()
            with anyio.fail_after(60):
                status = await process.wait()
                await relay.delivered()
            return status, hangups

    assert anyio.run(main) == (0, ["hung up"])


def test_nothing_of_it_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd"))

    async def main() -> None:
        async with _client("cat", (0, 1)) as (ours, _, process, _hangups):
            ours.shutdown(socket.SHUT_WR)
            with anyio.fail_after(60):
                await process.wait()

    anyio.run(main)
    assert len(os.listdir("/proc/self/fd")) == before
