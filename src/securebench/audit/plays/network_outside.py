"""Sockets and files between a sandbox and what is not in it: servers of ours on the host, and neighbours."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from securebench._tasks import side_tasks
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.sandboxes.base import Command, Limits, Network, OnOutput, SandboxResult, SandboxSpec, Scratch, Session

SECONDS = 60.0
WORK = "/work"
DONE = "that was all"


class BrokenProgram(Exception):
    """The program that plays the attacker did not come to its end, so what it shows is worth nothing."""


@dataclass(frozen=True, slots=True)
class CallOut:
    """A program in a sandbox calls servers on the host in every way it is told of, and wants the word they say.

    With `beside` the servers are in the sandbox itself, as if both had one network and one file system."""

    program: str
    network: Network = Network.NONE
    beside: str = ""

    async def on(self, ground: Ground) -> Seen:
        word = secrets.token_hex(8)
        async with _servers(word, ground.directory) as places:
            told = {**places, "word": word if self.beside else ""}
            spec = _spec(ground, self.network)
            async with ground.sandbox.open(spec) as session:
                printed = await _printed(session, self.beside + self.program, told)
        return Seen(End.REACHED if word in printed else End.MISSED, printed.partition(DONE)[0].strip()[-300:])


@dataclass(frozen=True, slots=True)
class PassOn:
    """One attempt leaves a note and stays; another, at the same time and once more afterwards, looks for it.

    With `together` there is one sandbox for both; `itself` is an attempt that finds what it left."""

    leave: str
    find: str
    network: Network = Network.LOOPBACK
    together: bool = False
    itself: bool = False

    async def on(self, ground: Ground) -> Seen:
        note = f"note-{secrets.token_hex(8)}"
        spec = _spec(ground, self.network)
        if self.itself:
            async with ground.sandbox.open(spec) as session:
                await _printed(session, self.leave, {"note": note, "stay": 0})
                found = await _printed(session, self.find, {})
            return Seen(End.REACHED if note in found else End.MISSED, "in one attempt")
        if self.together:
            both = f"{_CHILD}{self.find}"
            async with ground.sandbox.open(spec) as session:
                found = await _printed(session, both, {"note": note, "stay": 30, "leave": self.leave})
            return Seen(End.REACHED if note in found else End.MISSED, "in one sandbox")
        async with ground.sandbox.open(spec) as first:
            async with side_tasks() as tasks:
                left = anyio.Event()

                async def leave() -> None:
                    await first.run(_command(self.leave, {"note": note, "stay": 30}, lambda *_: left.set()))

                tasks.start_soon(leave)
                with anyio.fail_after(SECONDS):
                    await left.wait()
                async with ground.sandbox.open(spec) as second:
                    found = await _printed(second, self.find, {})
            await first.stop()
        async with ground.sandbox.open(spec) as third:
            found += await _printed(third, self.find, {})
        return Seen(End.REACHED if note in found else End.MISSED, "between two sandboxes")


_CHILD = r"""
import json, os, subprocess, sys
told = json.loads(sys.argv[1])
child = subprocess.Popen([sys.executable, "-I", "-c", told["leave"], json.dumps(told)], stdout=subprocess.PIPE)
child.stdout.readline()
"""


def _spec(ground: Ground, network: Network) -> SandboxSpec:
    limits = Limits(wall_seconds=SECONDS)
    return SandboxSpec(root=ground.root, mounts=(Scratch(WORK),), cwd=WORK, network=network, limits=limits)


def _command(program: str, told: object, on_output: OnOutput | None = None) -> Command:
    argv = ("python3", "-I", "-c", f"{program}\nprint({DONE!r}, flush=True)\n", json.dumps(told))
    return Command(argv, on_output=on_output)


async def _printed(session: Session, program: str, told: object) -> str:
    result: SandboxResult = await session.run(_command(program, told))
    printed = result.stdout.data.decode("utf-8", "replace")
    if not result.ok or DONE not in printed:
        raise BrokenProgram(f"{result.outcome}: {result.stderr.data[-300:].decode('utf-8', 'replace')}")
    return printed


@asynccontextmanager
async def _servers(word: str, directory: Path) -> AsyncIterator[dict[str, object]]:
    """Servers of every kind on this host, and where they are."""
    data = word.encode()

    async def streams(listener: socket.socket) -> None:
        while True:
            await anyio.wait_readable(listener)
            with suppress(OSError):
                peer, _ = listener.accept()
                with peer:
                    peer.sendall(data)

    async def datagrams(sock: socket.socket) -> None:
        while True:
            await anyio.wait_readable(sock)
            with suppress(OSError):
                sock.sendto(data, sock.recvfrom(2048)[1])

    async with AsyncExitStack() as stack:
        path, abstract = str(directory / "s"), f"securebench-{secrets.token_hex(8)}"
        listeners = [_listener(socket.AF_INET, ("127.0.0.1", 0)), _listener(socket.AF_UNIX, path)]
        listeners.append(_listener(socket.AF_UNIX, f"\0{abstract}"))
        port = listeners[0].getsockname()[1]
        with suppress(OSError):
            listeners.append(_listener(socket.AF_INET6, ("::1", port)))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", port))
        udp.setblocking(False)
        directory.chmod(0o711)  # else the walls around it would be those of the file system
        Path(path).chmod(0o777)
        for sock in (*listeners, udp):
            stack.callback(sock.close)
        tasks = await stack.enter_async_context(side_tasks())
        for listener in listeners:
            tasks.start_soon(streams, listener)
        tasks.start_soon(datagrams, udp)
        yield {"port": port, "path": path, "abstract": abstract}


def _listener(family: int, address: tuple[str, int] | str) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.bind(address)
        sock.listen()
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
