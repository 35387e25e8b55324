"""The door through which a holder hands listeners over, and the Python that runs there. No engine is needed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import anyio
import pytest

from securebench._leftovers import staging_directory
from securebench.errors import SandboxError, SandboxUnavailable
from securebench.sandboxes import _listeners
from securebench.sandboxes._docker.args import Program
from securebench.sandboxes._docker.hand_over import Door, check_listeners, failed
from securebench.sandboxes._docker.interpreter import assemble, find_interpreter, loaded_objects
from securebench.sandboxes._docker.state import State
from securebench.sandboxes._launch import listening as _listening
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes.base import Guarantee, Network, SandboxSpec

RUNNING = State(running=True, exit_code=0, oom_killed=False, error="", pid=1, started=None, finished=None)


@pytest.fixture
def staging() -> Iterator[Path]:
    with staging_directory() as made:
        yield made


def _place(staging: Path) -> Path:
    return staging / "door" / "inside"


async def _still() -> State:
    return RUNNING


async def _ended(code: int = 127) -> State:
    return State(running=False, exit_code=code, oom_killed=False, error="", pid=0, started=None, finished=None)


def _program(door: Door, *ports: int) -> Program:
    return anyio.run(door.program, ports)


def _receive(door: Door, port: int) -> None:
    async def main() -> None:
        listeners: Listeners = await door.receive((port,), _still)
        listeners.close()

    anyio.run(main)


def _free() -> int:
    """Below those that are given to whoever does not care."""
    for port in range(25_000 + os.getpid() % 6_000, 32_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def _visit(staging: Path, token: str, *ports: int) -> subprocess.CompletedProcess[bytes]:
    """The program itself, on this host and with this Python."""
    inside = _place(staging)
    argv = [sys.executable, "-S", "-B", str(inside / "listening.py"), str(inside / "socket"), *map(str, ports)]
    return subprocess.run(argv, env={_listening.TOKEN: token}, stdin=subprocess.DEVNULL, timeout=60, check=False)


def test_program_hands_over_what_was_asked_for(staging: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_listeners, "_namespace", lambda _: None)  # it is the host's own here
    port = _free()
    with closing(Door(staging)) as door:
        token = _program(door, port).env[_listening.TOKEN]
        assert _visit(staging, token, port).returncode == 0
        _receive(door, port)


def test_listener_of_the_host_is_refused(staging: Path) -> None:
    port = _free()
    with closing(Door(staging)) as door:
        token = _program(door, port).env[_listening.TOKEN]
        assert _visit(staging, token, port).returncode == 0
        with pytest.raises(SandboxError, match="host's own loopback"):
            _receive(door, port)


def test_visitor_without_the_token_is_refused(staging: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_listeners, "_namespace", lambda _: None)
    port = _free()
    with closing(Door(staging)) as door:
        before = len(os.listdir("/proc/self/fd"))
        assert _visit(staging, "0" * 32, port).returncode == 0
        with pytest.raises(SandboxError, match="somebody else"):
            _receive(door, port)
        assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_visitor_that_says_nothing_is_refused(staging: Path) -> None:
    with closing(Door(staging)) as door, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as visitor:
        visitor.connect(str(_place(staging) / "socket"))
        visitor.shutdown(socket.SHUT_RDWR)
        with pytest.raises(SandboxError, match="somebody else"):
            _receive(door, 3128)


def test_token_is_another_each_time(staging: Path) -> None:
    with closing(Door(staging)) as door:
        first = _program(door, 3128).env[_listening.TOKEN]
    with staging_directory() as other, closing(Door(other)) as door:
        assert _program(door, 3128).env[_listening.TOKEN] != first


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_nobody_else_on_this_host_can_enter(staging: Path) -> None:
    connect = "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])"
    argv = ["/usr/bin/python3", "-I", "-c", connect, str(_place(staging) / "socket")]
    other = ["setpriv", "--reuid=61999", "--regid=61999", "--clear-groups"]
    with closing(Door(staging)):
        done = subprocess.run([*other, *argv], capture_output=True, text=True, timeout=60, check=False)
        assert "PermissionError" in done.stderr
        (staging / "door").chmod(0o711)  # the positive control
        assert subprocess.run([*other, *argv], timeout=60, check=False).returncode == 0


def test_long_temporary_directory_is_no_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with staging_directory() as staging, closing(Door(staging)):
        assert (_place(staging) / "socket").is_socket()


@pytest.mark.parametrize(
    "code,kind,words",
    [
        (_listening.NO_PORT, SandboxError, "could not be bound"),
        (_listening.NO_DOOR, SandboxUnavailable, "cannot reach a socket"),
        (127, SandboxUnavailable, "does not run"),
    ],
)
def test_holder_that_ended_is_explained(code: int, kind: type[Exception], words: str) -> None:
    error = failed(anyio.run(_ended, code))
    assert isinstance(error, kind)
    assert words in str(error)


def test_holder_that_ends_before_it_came_is_noticed(staging: Path) -> None:
    async def main() -> None:
        await door.receive((3128,), _ended)

    with closing(Door(staging)) as door, pytest.raises(SandboxUnavailable, match="does not run"):
        anyio.run(main)


def test_taken_port_is_told_by_the_exit_code(staging: Path) -> None:
    with closing(Door(staging)), socket.create_server(("127.0.0.1", 0)) as server:
        assert _visit(staging, "", server.getsockname()[1]).returncode == _listening.NO_PORT


def test_missing_door_is_told_by_the_exit_code(staging: Path) -> None:
    with closing(Door(staging)):
        (_place(staging) / "socket").unlink()
        assert _visit(staging, "", _free()).returncode == _listening.NO_DOOR


def test_kernel_of_its_own_is_refused() -> None:
    spec = SandboxSpec(network=Network.LOOPBACK, listeners=(3128,))
    check_listeners(spec, frozenset({Guarantee.NET}))
    check_listeners(SandboxSpec(), frozenset({Guarantee.KERNEL}))
    with pytest.raises(SandboxUnavailable):
        check_listeners(spec, frozenset({Guarantee.KERNEL}))


TRACE = """\tlinux-vdso.so.1 (0x00007ffd)
\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f05)
\tlibodd.so (x) => /opt/a b/libodd.so (0x00007f06)
\tlibgone.so.1 => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f07)
"""


def test_loaded_objects_are_read() -> None:
    loader, libraries = loaded_objects(TRACE)
    assert loader == Path("/lib64/ld-linux-x86-64.so.2")
    assert libraries["libz.so.1"] == Path("/lib/x86_64-linux-gnu/libz.so.1")
    assert "libgone.so.1" not in libraries
    assert loaded_objects("\tstatically linked\n") == (None, {})


def test_files_lie_beneath_one_directory() -> None:
    modules = [Path("/opt/python/lib/python3.11/encodings/__init__.py")]
    libraries = {"libz.so.1": Path("/lib/libz.so.1.3")}
    made = assemble("/h", Path("/opt/python/bin/python3"), Path("/lib/ld.so"), libraries, Path("/opt/python"), modules)
    assert made.argv[:4] == ("/h/loader", "--library-path", "/h/libraries", "/h/python")
    assert {bind.target for bind in made.binds} == {
        "/h/loader", "/h/libraries/libz.so.1", "/h/python", "/h/lib/python3.11/encodings/__init__.py",
    }  # fmt: skip
    static = assemble("/h", Path("/p"), None, {}, Path("/opt"), [])
    assert static.argv[0] == "/h/python"


def test_module_from_elsewhere_is_refused() -> None:
    with pytest.raises(SandboxError, match="is not in"):
        assemble("/h", Path("/p"), None, {}, Path("/opt"), [Path("/etc/passwd")])


def test_few_files_of_this_host_are_shown() -> None:
    made = anyio.run(find_interpreter, Path(_listening.__file__), "/h")
    assert all(bind.source.is_file() for bind in made.binds)
    assert len(made.binds) < 25
    assert not [bind for bind in made.binds if "site-packages" in str(bind.source)]
