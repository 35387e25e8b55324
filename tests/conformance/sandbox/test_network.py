"""No address, name or socket of any family outside can be reached."""

from __future__ import annotations

import errno
import os
import socket

import anyio
import pytest
from tests.conformance.sandbox.box import PYTHON, Box, outside, text
from tests.conformance.sandbox.test_walls import EVERYTHING_ALLOWED

from securebench.sandboxes._bubblewrap import direct as _direct
from securebench.sandboxes.base import Command, Limits, Network, SandboxResult, SandboxSpec, Scratch, Session

NETWORKS = pytest.mark.parametrize("network", [Network.NONE, Network.LOOPBACK])
FAMILIES = {"netlink": 16, "packet": 17, "can": 29, "tipc": 30, "bluetooth": 31, "alg": 38, "vsock": 40, "xdp": 44}
TRY = """
import socket
try:
    s = socket.socket({family}, {kind})
    s.settimeout(2)
    {action}
    print('reached')
except OSError as error:
    print('refused', error.errno)
"""


def _try(family: str, kind: str, action: str) -> str:
    return TRY.format(family=family, kind=kind, action=action)


@NETWORKS
def test_tcp_server_of_the_host_is_out_of_reach(box: Box, network: Network) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        attack = _try("socket.AF_INET", "socket.SOCK_STREAM", f"s.connect({server.getsockname()!r})")
        assert outside(attack) == "reached"
        assert text(box.py(attack, network=network)).startswith("refused")


@NETWORKS
def test_tcp_server_of_the_host_is_out_of_reach_by_ipv6(box: Box, network: Network) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this host has no IPv6")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        attack = _try("socket.AF_INET6", "socket.SOCK_STREAM", f"s.connect(('::1', {server.getsockname()[1]}))")
        assert outside(attack) == "reached"
        assert text(box.py(attack, network=network)).startswith("refused")


@NETWORKS
def test_datagram_does_not_arrive(box: Box, network: Network) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        attack = _try("socket.AF_INET", "socket.SOCK_DGRAM", f"s.sendto(b'inside', {server.getsockname()!r})")
        outside(attack.replace("inside", "outside"))
        assert server.recv(100) == b"outside"
        box.py(attack, network=network)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.recv(100)


@NETWORKS
def test_there_is_no_route_out(box: Box, network: Network) -> None:
    attack = _try("socket.AF_INET", "socket.SOCK_DGRAM", "s.connect(('192.0.2.1', 53))")  # sends nothing
    refusals = {str(number) for number in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EAFNOSUPPORT)}
    assert text(box.py(attack, network=network)).split()[1] in refusals


@NETWORKS
def test_abstract_socket_of_the_host_is_out_of_reach(box: Box, network: Network) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0securebench-test-{os.getpid()}-{network}"
        server.bind(name)
        server.listen()
        attack = _try("socket.AF_UNIX", "socket.SOCK_STREAM", f"s.connect({name!r})")
        assert outside(attack) == "reached"
        assert text(box.py(attack, network=network)).startswith("refused")


LISTEN = """
import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind('\\0between-sandboxes'); s.listen(); s.settimeout(60)
c = socket.socket(socket.AF_UNIX); c.connect('\\0between-sandboxes'); print('itself', flush=True)
sys.stdin.read(); import time; time.sleep(50)
"""


def test_abstract_socket_of_another_sandbox_is_out_of_reach(box: Box) -> None:
    attack = _try("socket.AF_UNIX", "socket.SOCK_STREAM", "s.connect('\\0between-sandboxes')")
    results: list[SandboxResult] = []

    async def main() -> None:
        listening = anyio.Event()
        listen = Command((PYTHON, "-c", LISTEN), on_output=lambda *_: listening.set())
        spec = SandboxSpec(mounts=(Scratch("/work"),), limits=Limits(wall_seconds=60))
        async with (
            box.sandbox.open(spec) as first,
            box.sandbox.open(spec) as second,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(first.run, listen)
            await listening.wait()
            results.append(await second.run(Command((PYTHON, "-c", attack))))
            tasks.cancel_scope.cancel()

    anyio.run(main)
    assert text(results[0]).startswith("refused")


@NETWORKS
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_other_family_does_not_exist(box: Box, family: str, network: Network) -> None:
    attack = _try(str(FAMILIES[family]), "socket.SOCK_RAW", "pass")
    assert text(box.py(attack, network=network)) == f"refused {errno.EAFNOSUPPORT}"


def test_netlink_socket_exists_without_the_filter(bubblewrap: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    attack = _try("socket.AF_NETLINK", "socket.SOCK_RAW", "pass")
    monkeypatch.setattr(_direct, "build_filter", lambda *_, **__: EVERYTHING_ALLOWED)
    assert text(bubblewrap.py(attack)) == "reached"


def test_without_network_there_are_no_internet_sockets(box: Box) -> None:
    own = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('own')"
    assert not box.py(own, network=Network.NONE).ok
    assert text(box.py(own, network=Network.LOOPBACK)) == "own"


def test_loopback_has_ipv6_too(box: Box) -> None:
    own = (
        "import socket; s = socket.create_server(('::1', 0), family=socket.AF_INET6)\n"
        "socket.create_connection(s.getsockname()[:2]); print('own')"
    )
    assert text(box.py(own, network=Network.LOOPBACK)) == "own"


def test_only_interface_is_loopback(box: Box) -> None:
    names = text(box.sh("tail -n +3 /proc/net/dev | cut -d: -f1", network=Network.LOOPBACK)).split()
    assert names == ["lo"]


def test_no_name_is_resolved(box: Box) -> None:
    lookup = "import socket\ntry: print(socket.gethostbyname('example.com'))\nexcept OSError: print('none')"
    assert text(box.py(lookup, network=Network.LOOPBACK)) == "none"
    assert (
        text(box.py("import socket; print(socket.gethostbyname('localhost'))", network=Network.LOOPBACK)) == "127.0.0.1"
    )


def test_server_started_by_one_command_answers_the_next(box: Box) -> None:
    """A session keeps its processes and its loopback until it is stopped."""

    async def body(session: Session) -> str:
        serve = (
            "import socket, os\n"
            "s = socket.create_server(('127.0.0.1', 8000))\n"
            "if os.fork() == 0:\n os.setsid(); c, _ = s.accept(); c.send(b'served'); os._exit(0)"
        )
        await session.run(Command((PYTHON, "-c", serve)))
        ask = "import socket; print(socket.create_connection(('127.0.0.1', 8000)).recv(10).decode())"
        return text(await session.run(Command((PYTHON, "-c", ask))))

    spec = SandboxSpec(mounts=(Scratch("/work"),), network=Network.LOOPBACK, limits=Limits(wall_seconds=60))
    assert box.session(spec, body) == "served"
