"""`Network.UNSAFE_HOST`: the host's network and nothing else of the host."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import Box, text
from tests.conformance.sandbox.test_network import FAMILIES, _try
from tests.conformance.sandbox.test_walls import CALL, CALLS

from securebench.errors import ConfigError
from securebench.sandboxes.base import Command, Guarantee, Network, Sandbox, SandboxSpec, Scratch, run_once
from securebench.sandboxes.docker import DockerSandbox
from securebench.sandboxes.guarded import GuardedSandbox
from securebench.sandboxes.host import HostSandbox

SPECS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["fresh", "session"])
OPEN = {"network": Network.UNSAFE_HOST, "require": frozenset({Guarantee.FS, Guarantee.PID})}


@SPECS
def test_servers_of_the_host_are_reached_only_so(bubblewrap: Box, mounts: tuple[Scratch, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ask = _try("socket.AF_INET", "socket.SOCK_STREAM", f"s.connect({server.getsockname()!r})")
        assert text(bubblewrap.py(ask, mounts=mounts, **OPEN)) == "reached"
        assert text(bubblewrap.py(ask, mounts=mounts)).startswith("refused")
    if socket.has_dualstack_ipv6():
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
            ask = _try("socket.AF_INET6", "socket.SOCK_STREAM", f"s.connect(('::1', {server.getsockname()[1]}))")
            assert text(bubblewrap.py(ask, mounts=mounts, **OPEN)) == "reached"


@SPECS
def test_result_does_not_claim_what_was_given_up(bubblewrap: Box, mounts: tuple[Scratch, ...]) -> None:
    result = bubblewrap.sh("true", mounts=mounts, **OPEN)
    assert result.ok
    assert result.guarantees == bubblewrap.guarantees - {Guarantee.NET}
    assert Guarantee.NET in bubblewrap.sh("true", mounts=mounts).guarantees


@SPECS
def test_names_are_looked_up_as_on_the_host(bubblewrap: Box, mounts: tuple[Scratch, ...]) -> None:
    for name in ("resolv.conf", "hosts", "nsswitch.conf"):
        path = Path("/etc", name)
        if path.is_file():
            assert bubblewrap.sh(f"cat /etc/{name}", mounts=mounts, **OPEN).stdout.data == path.read_bytes()
    assert text(bubblewrap.sh("[ -e /etc/resolv.conf ] && echo visible || echo absent", mounts=mounts)) == "absent"


@SPECS
def test_the_walls_stand_as_always(bubblewrap: Box, mounts: tuple[Scratch, ...]) -> None:
    look = "import os; print(os.path.exists('/root'), sum(name.isdigit() for name in os.listdir('/proc')) <= 3)"
    assert text(bubblewrap.py(look, mounts=mounts, **OPEN)) == "False True"
    for name, arguments in (("ptrace", "0, 0, 0, 0"), ("unshare", "0x10000000"), ("bpf", "0, buffer, 72")):
        program = CALL.format(number=CALLS[name], arguments=arguments)
        assert int(text(bubblewrap.py(program, mounts=mounts, **OPEN))) == errno.EPERM


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_other_family_does_not_exist(bubblewrap: Box, family: str) -> None:
    attack = _try(str(FAMILIES[family]), "socket.SOCK_RAW", "pass")
    assert text(bubblewrap.py(attack, **OPEN)) == f"refused {errno.EAFNOSUPPORT}"


def test_abstract_socket_of_the_host_is_out_of_reach(bubblewrap: Box) -> None:
    """They belong to the network namespace, which is the host's here; so there are no such sockets at all."""
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0securebench-test-{os.getpid()}-open"
        server.bind(name)
        server.listen()
        attack = _try("socket.AF_UNIX", "socket.SOCK_STREAM", f"s.connect({name!r})")
        assert text(bubblewrap.py(attack, **OPEN)) == f"refused {errno.EAFNOSUPPORT}"
    pair = "import socket; a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(4).decode())"
    assert text(bubblewrap.py(pair, **OPEN)) == "pair"


def test_spec_cannot_require_the_guarantee_it_gives_up() -> None:
    with pytest.raises(ConfigError, match="guarantee net"):
        SandboxSpec(network=Network.UNSAFE_HOST)


@pytest.mark.parametrize("sandbox", [DockerSandbox(), GuardedSandbox(), HostSandbox()], ids=lambda made: made.name)
def test_no_other_backend_gives_it(sandbox: Sandbox) -> None:
    spec = SandboxSpec(network=Network.UNSAFE_HOST, require=frozenset())
    with pytest.raises(ConfigError, match="host's network"):
        anyio.run(run_once, sandbox, spec, Command(("/bin/true",)))
