"""Listeners: ports of the sandbox's own loopback that the host answers, and nothing else that can be reached."""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import anyio
import anyio.lowlevel
import pytest
from tests.conformance.sandbox.box import PYTHON, Box, outside, text
from tests.conformance.sandbox.test_network import LISTEN, _try

from securebench.errors import SandboxError
from securebench.sandboxes.base import MIB, Command, Limits, Network, SandboxResult, SandboxSpec, Scratch, Session

PORT, OTHER = 3128, 8377
SPEC = SandboxSpec(network=Network.LOOPBACK, listeners=(PORT,), limits=Limits(wall_seconds=60))
KINDS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["bare", "scratch"])
T = TypeVar("T")

ASK = f"import socket; s = socket.create_connection(('127.0.0.1', {PORT}), 60); s.sendall(b'inside\\n'); "
ASK += "print(s.makefile().readline().strip())"


def _connect(port: int, host: str = "127.0.0.1") -> str:
    """A program that says whether it reached a TCP server."""
    return _try("socket.AF_INET", "socket.SOCK_STREAM", f"s.connect(({host!r}, {port}))")


def _python(program: str) -> Command:
    return Command((PYTHON, "-I", "-c", program))


async def _accept(listener: socket.socket) -> socket.socket:
    while True:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            await anyio.wait_readable(listener)
        else:
            return connection


async def _answer(listener: socket.socket, words: bytes) -> None:
    """Answer every connection with these words, once it said something."""
    while True:
        with await _accept(listener) as connection:
            connection.settimeout(60)
            await anyio.wait_readable(connection)
            connection.recv(100)
            connection.sendall(words)


def _served(box: Box, spec: SandboxSpec, body: Callable[[Session], Awaitable[T]], words: bytes = b"host\n") -> T:
    """What `body` returns while every listener of its session is answered."""

    async def main() -> T:
        async with box.sandbox.open(spec) as session, anyio.create_task_group() as tasks:
            for port in spec.listeners:
                tasks.start_soon(_answer, session.listener(port), words)
            result = await body(session)
            tasks.cancel_scope.cancel()
        return result

    return anyio.run(main)


def _says(box: Box, program: str, spec: SandboxSpec = SPEC) -> str:
    async def body(session: Session) -> SandboxResult:
        return await session.run(_python(program))

    return text(_served(box, spec, body))


@KINDS
def test_command_talks_to_the_host(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert _says(box, ASK, replace(SPEC, mounts=mounts)) == "host"


def test_listener_is_ready_before_any_command_and_cannot_block(box: Box) -> None:
    async def body(session: Session) -> None:
        listener = session.listener(PORT)
        assert listener.getsockname() == ("127.0.0.1", PORT)
        assert not listener.getblocking()
        assert not listener.get_inheritable()
        with pytest.raises(BlockingIOError):
            listener.accept()

    box.session(SPEC, body)


def test_each_command_of_a_session_reaches_it(box: Box) -> None:
    async def body(session: Session) -> list[str]:
        return [text(await session.run(_python(ASK))) for _ in range(3)]

    assert _served(box, SPEC, body) == ["host"] * 3


def test_several_ports_are_told_apart(box: Box) -> None:
    async def main() -> str:
        async with box.sandbox.open(replace(SPEC, listeners=(PORT, OTHER))) as session, anyio.create_task_group() as t:
            t.start_soon(_answer, session.listener(PORT), b"first\n")
            t.start_soon(_answer, session.listener(OTHER), b"second\n")
            seen = text(await session.run(_python(f"{ASK}\n{ASK.replace(str(PORT), str(OTHER))}")))
            t.cancel_scope.cancel()
            return seen

    assert anyio.run(main).split() == ["first", "second"]


def test_two_sandboxes_with_the_same_port_do_not_meet(box: Box) -> None:
    seen: dict[str, str] = {}

    async def one(session: Session, name: str) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_answer, session.listener(PORT), f"{name}\n".encode())
            seen[name] = text(await session.run(_python(f"{ASK}\nimport time; time.sleep(0.5)\n{ASK}")))
            tasks.cancel_scope.cancel()

    async def main() -> None:
        async with (
            box.sandbox.open(SPEC) as first,
            box.sandbox.open(SPEC) as second,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(one, first, "first")
            tasks.start_soon(one, second, "second")

    anyio.run(main)
    assert seen == {"first": "first\nfirst", "second": "second\nsecond"}


def test_port_that_is_not_named_is_refused(box: Box) -> None:
    assert _says(box, _connect(PORT)) == "reached"  # positive control
    assert _says(box, _connect(OTHER)) == f"refused {errno.ECONNREFUSED}"


@pytest.mark.parametrize("same", [True, False], ids=["same port", "another port"])
def test_server_of_the_host_is_out_of_reach(box: Box, same: bool) -> None:
    """On the host's loopback there is a server that this host reaches; inside, that address is the listener or none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        port = server.getsockname()[1]
        assert outside(_connect(port)) == "reached"
        server.accept()[0].close()
        spec = replace(SPEC, listeners=(port,)) if same else SPEC
        assert _says(box, _connect(port), spec) == ("reached" if same else f"refused {errno.ECONNREFUSED}")
        with pytest.raises(TimeoutError):
            server.accept()


def test_listener_cannot_be_reached_from_the_host(box: Box) -> None:
    with socket.socket() as held:  # nobody else of this host can listen there meanwhile
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]

        async def body(session: Session) -> tuple[str, str]:
            return outside(_connect(port)), text(await session.run(_python(_connect(port))))

        assert _served(box, replace(SPEC, listeners=(port,)), body) == (f"refused {errno.ECONNREFUSED}", "reached")


@pytest.mark.parametrize("address", ["192.0.2.1", "8.8.8.8", "172.17.0.1", "169.254.169.254"])
def test_there_is_no_route_besides_listeners(box: Box, address: str) -> None:
    refusals = {f"refused {number}" for number in (errno.ENETUNREACH, errno.EHOSTUNREACH)}
    assert _says(box, _connect(PORT, address)) in refusals


def test_no_name_is_resolved_besides_listeners(box: Box) -> None:
    lookup = "import socket\ntry: print(socket.getaddrinfo('example.com', 80))\nexcept OSError: print('none')"
    assert _says(box, lookup) == "none"
    assert _says(box, "import socket; print(socket.gethostbyname('localhost'))") == "127.0.0.1"


def test_only_interface_is_loopback_with_ipv6(box: Box) -> None:
    names = "print(*[line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line])"
    assert _says(box, names) == "lo"
    own = "import socket; s = socket.create_server(('::1', 0), family=socket.AF_INET6); print('own')"
    assert _says(box, own) == "own"


@pytest.mark.parametrize(
    "option", ["", "s.setsockopt(1, socket.SO_REUSEADDR, 1)", "s.setsockopt(1, socket.SO_REUSEPORT, 1)"]
)
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_command_cannot_take_the_port(box: Box, option: str, address: str) -> None:
    for port, expected in ((PORT, f"refused {errno.EADDRINUSE}"), (OTHER, "reached")):
        take = f"{option or 'pass'}; s.bind(({address!r}, {port})); s.listen()"
        assert _says(box, _try("socket.AF_INET", "socket.SOCK_STREAM", take)) == expected


def test_abstract_socket_of_another_sandbox_with_listeners_is_out_of_reach(box: Box) -> None:
    attack = _try("socket.AF_UNIX", "socket.SOCK_STREAM", "s.connect('\\0between-sandboxes')")
    seen: list[str] = []

    async def main() -> None:
        listening = anyio.Event()
        listen = Command((PYTHON, "-c", LISTEN), on_output=lambda *_: listening.set())
        async with (
            box.sandbox.open(SPEC) as first,
            box.sandbox.open(SPEC) as second,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(first.run, listen)  # which reaches it itself
            await listening.wait()
            seen.append(text(await second.run(_python(attack))))
            tasks.cancel_scope.cancel()

    anyio.run(main)
    assert seen[0].startswith("refused")


STREAM = """
import hashlib, socket, threading
s = socket.create_connection(('127.0.0.1', PORT), 60)
data = bytes(range(251)) * (SIZE // 251)
sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
sender.start()
seen = hashlib.sha256()
while chunk := s.recv(65536):
    seen.update(chunk)
sender.join()
print(hashlib.sha256(data).hexdigest(), seen.hexdigest())
"""


def test_megabytes_go_both_ways_at_once(box: Box) -> None:
    size = 8 * MIB
    answer = os.urandom(size)
    received = hashlib.sha256()

    async def talk(listener: socket.socket) -> None:
        with await _accept(listener) as connection:
            connection.setblocking(False)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send, connection)
                while True:
                    await anyio.wait_readable(connection)
                    if not (chunk := connection.recv(65536)):
                        break
                    received.update(chunk)

    async def send(connection: socket.socket) -> None:
        view = memoryview(answer)
        while view:
            with suppress(BlockingIOError):
                view = view[connection.send(view) :]
            await anyio.wait_writable(connection)
        connection.shutdown(socket.SHUT_WR)

    async def main() -> str:
        async with box.sandbox.open(SPEC) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(talk, session.listener(PORT))
            return text(await session.run(_python(STREAM.replace("PORT", str(PORT)).replace("SIZE", str(size)))))

    sent, seen = anyio.run(main).split()
    assert sent == received.hexdigest()
    assert seen == hashlib.sha256(answer).hexdigest()


def test_many_connections_one_after_the_other(box: Box) -> None:
    assert _says(box, f"for _ in range(300):\n {ASK}").split() == ["host"] * 300


def test_connections_wait_until_the_host_accepts(box: Box) -> None:
    """A host that is slow to accept loses nobody."""
    many = (
        f"import socket; all = [socket.create_connection(('127.0.0.1', {PORT}), 60) for _ in range(100)]\n"
        "print('connected', flush=True); print(sum(s.recv(1) == b'x' for s in all))"
    )

    async def main() -> SandboxResult:
        connected = anyio.Event()
        results: list[SandboxResult] = []

        async def run(session: Session) -> None:
            command = Command((PYTHON, "-I", "-c", many), on_output=lambda *_: connected.set())
            results.append(await session.run(command))

        async with box.sandbox.open(SPEC) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(run, session)
            await connected.wait()
            for _ in range(100):
                with await _accept(session.listener(PORT)) as connection:
                    connection.sendall(b"x")
        return results[0]

    assert text(anyio.run(main)).split() == ["connected", "100"]


@pytest.mark.parametrize("how", ["stop", "close"])
def test_listener_closes_with_the_session(box: Box, how: str) -> None:
    async def main() -> socket.socket:
        async with box.sandbox.open(SPEC) as session:
            listener = session.listener(PORT)
            await session.run(Command(("true",)))
            if how == "stop":
                await session.stop()
                assert listener.fileno() == -1
                with pytest.raises(SandboxError, match="stopped"):
                    session.listener(PORT)
            else:
                assert listener.fileno() >= 0
        return listener

    assert anyio.run(main).fileno() == -1


def test_nobody_inside_listens_once_the_host_does_not(box: Box) -> None:
    """No process of the sandbox holds the socket: what the host closes is refused at once."""

    async def body(session: Session) -> str:
        session.listener(PORT).close()
        return text(await session.run(_python(_connect(PORT))))

    assert box.session(SPEC, body) == f"refused {errno.ECONNREFUSED}"


def test_who_waits_for_a_connection_is_woken_by_the_end(box: Box) -> None:
    async def wait(listener: socket.socket, woken: anyio.Event) -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await anyio.wait_readable(listener)
        woken.set()

    async def main() -> None:
        woken = anyio.Event()
        async with box.sandbox.open(SPEC) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(wait, session.listener(PORT), woken)
            await anyio.lowlevel.checkpoint()
            await session.stop()
            with anyio.fail_after(60):
                await woken.wait()

    anyio.run(main)


def test_end_of_the_session_ends_its_connections(box: Box) -> None:
    hold = f"import socket, time; s = socket.create_connection(('127.0.0.1', {PORT})); s.send(b'x'); time.sleep(60)"

    async def main() -> socket.socket:
        async with box.sandbox.open(SPEC) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(session.run, _python(hold))
            connection = await _accept(session.listener(PORT))
            tasks.cancel_scope.cancel()
        return connection

    with anyio.run(main) as connection:
        connection.settimeout(60)
        with suppress(ConnectionError):
            assert connection.recv(10, socket.MSG_WAITALL) in (b"x", b"")


@KINDS
def test_other_port_has_no_listener(box: Box, mounts: tuple[Scratch, ...]) -> None:
    async def body(session: Session) -> None:
        with pytest.raises(SandboxError, match=str(OTHER)):
            session.listener(OTHER)

    box.session(replace(SPEC, mounts=mounts), body)
    box.session(SandboxSpec(mounts=mounts), body)


def _descriptors() -> int:
    gc.collect()  # what earlier tests left in cycles is closed now, and not between two readings
    return len(os.listdir("/proc/self/fd"))


def test_no_descriptor_of_a_listener_remains(box: Box) -> None:
    _says(box, ASK)
    before = _descriptors()
    _says(box, ASK)
    assert _descriptors() <= before


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.005, 0.01, 0.02, 0.04])
def test_cancelled_opening_leaves_no_descriptor(box: Box, seconds: float) -> None:
    async def main() -> None:
        with anyio.move_on_after(seconds):
            async with box.sandbox.open(SPEC):
                await anyio.sleep_forever()

    _says(box, ASK)
    before = _descriptors()
    for _ in range(3):
        anyio.run(main)
    assert _descriptors() <= before


def test_command_inherits_no_listener(box: Box) -> None:
    assert _says(box, "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])") == "[0, 1, 2]"
