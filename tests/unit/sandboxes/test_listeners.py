"""What a spec may ask for, and what is checked of a socket before the host accepts on it."""

from __future__ import annotations

import os
import socket

import anyio
import pytest

from securebench.errors import ConfigError, SandboxError
from securebench.sandboxes import _listeners
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes.base import MOST_LISTENERS, Guarantee, Network, Sandbox, SandboxSpec
from securebench.sandboxes.guarded import GuardedSandbox
from securebench.sandboxes.host import HostSandbox


@pytest.mark.parametrize(
    "ports", [(0,), (80,), (1023,), (65536,), (-1,), (3128, 3128), tuple(range(2000, 2001 + MOST_LISTENERS))]
)
def test_impossible_port_is_refused(ports: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="listener"):
        SandboxSpec(network=Network.LOOPBACK, listeners=ports)


@pytest.mark.parametrize("network", [Network.NONE, Network.UNSAFE_HOST])
def test_listeners_need_a_loopback_of_the_sandboxs_own(network: Network) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        SandboxSpec(network=network, listeners=(3128,), require=frozenset({Guarantee.FS}))
    assert SandboxSpec(network=Network.LOOPBACK, listeners=(1024, 65535)).listeners == (1024, 65535)


@pytest.mark.parametrize("sandbox", [GuardedSandbox(), HostSandbox()], ids=["guarded", "host"])
def test_backend_without_a_network_of_its_own_refuses(sandbox: Sandbox) -> None:
    async def main() -> None:
        async with sandbox.open(SandboxSpec(network=Network.LOOPBACK, listeners=(3128,), require=frozenset())):
            pass

    with pytest.raises(ConfigError, match="listen"):
        anyio.run(main)


@pytest.mark.parametrize("sandbox", [GuardedSandbox(), HostSandbox()], ids=["guarded", "host"])
def test_session_without_listeners_has_none(sandbox: Sandbox) -> None:
    async def main() -> None:
        async with sandbox.open(SandboxSpec(require=frozenset())) as session:
            session.listener(3128)

    with pytest.raises(SandboxError, match="3128"):
        anyio.run(main)


def _listening(address: str = "127.0.0.1", family: int = socket.AF_INET) -> socket.socket:
    return socket.create_server((address, 0), family=family)


def _adopt(port: int, *descriptors: int) -> None:
    """Whatever is refused is closed."""
    with pytest.raises(SandboxError):
        Listeners.adopt((port,), descriptors)
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_socket_of_the_hosts_own_loopback_is_refused() -> None:
    """It would offer the host's answers to every process of this host."""
    listener = _listening()
    port = listener.getsockname()[1]
    with pytest.raises(SandboxError, match="host's own loopback"):
        Listeners.adopt((port,), [listener.detach()])


def test_socket_that_is_right_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control of all refusals here: but for the namespace, this one is right."""
    monkeypatch.setattr(_listeners, "_namespace", lambda _: None)
    listener = _listening()
    port = listener.getsockname()[1]

    async def main() -> None:
        made = Listeners.adopt((port,), [listener.detach()])
        taken = made.at(port)
        assert not taken.getblocking()
        made.close()
        made.close()
        assert taken.fileno() == -1

    anyio.run(main)


@pytest.mark.parametrize("kind", ["file", "unix", "datagram", "idle", "connected", "port", "address", "ipv6"])
def test_anything_else_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_listeners, "_namespace", lambda _: None)
    port = 3128
    if kind == "file":
        return _adopt(port, os.open(os.devnull, os.O_RDONLY))
    if kind == "connected":
        with _listening() as server:
            made = socket.create_connection(server.getsockname())
            return _adopt(made.getsockname()[1], made.detach())
    made = {
        "unix": lambda: socket.socket(socket.AF_UNIX),
        "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "idle": lambda: socket.socket(socket.AF_INET),
        "port": _listening,
        "address": lambda: _listening("0.0.0.0"),
        "ipv6": lambda: _listening("::1", socket.AF_INET6),
    }[kind]()
    if kind in ("idle", "datagram"):
        made.bind(("127.0.0.1", 0))
    if kind not in ("port", "unix"):
        port = made.getsockname()[1]
    return _adopt(port, made.detach())


@pytest.mark.parametrize("count", [0, 2])
def test_other_number_of_descriptors_is_refused(count: int) -> None:
    _adopt(3128, *(_listening().detach() for _ in range(count)))
