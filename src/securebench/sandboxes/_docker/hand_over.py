"""How the listeners of a session come out of its holder: through a Unix socket that only the holder can reach.

The holder container runs `_launch/listening.py` with this host's Python. It binds the ports in its network namespace,
which the commands will share, sends the sockets through the door, and keeps none. That needs no privilege of ours, and
no command exists yet. The door is in a directory that nobody else on this host may enter, and whoever comes through it
must know a token that only the holder was given.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from securebench.errors import InfrastructureError, SandboxError, SandboxUnavailable
from securebench.sandboxes._docker.args import Program
from securebench.sandboxes._docker.interpreter import find_interpreter
from securebench.sandboxes._docker.state import State
from securebench.sandboxes._launch import listening as _listening
from securebench.sandboxes._launch import wire as _wire
from securebench.sandboxes._listeners import Listeners
from securebench.sandboxes.base import Bind, Guarantee, SandboxSpec

_HOME = "/securebench-listening"
_DOOR = f"{_HOME}/door"
_PRELOAD = "/etc/ld.so.preload"
_SECONDS = 60.0
_LOOK_SECONDS = 1.0
_REMEDY = (
    "Listeners need an engine that shares this host's kernel and files: a local Docker or Podman with runc or crun, "
    "neither remote nor in a virtual machine. Or use the bubblewrap backend with the imported image "
    "(securebench image import)."
)


def check_listeners(spec: SandboxSpec, guarantees: frozenset[Guarantee]) -> None:
    """Raises SandboxUnavailable where a socket of the container would not be one of the host's kernel."""
    if spec.listeners and Guarantee.KERNEL in guarantees:
        raise SandboxUnavailable("a container with a kernel of its own cannot hand listeners over", _REMEDY)


class Door:
    """Where the host waits for the listeners of one session. `close` closes it; its files go with `staging`."""

    def __init__(self, staging: Path) -> None:
        outer = staging / "door"
        outer.mkdir(mode=0o700)
        # The user of the holder is another one: what it has mounted is open, the way there is not.
        self._inside = outer / "inside"
        self._inside.mkdir()
        self._inside.chmod(0o711)
        program = self._inside / "listening.py"
        program.write_bytes(_source().read_bytes())
        program.chmod(0o444)
        (self._inside / "nothing").touch(0o444)
        self._token = secrets.token_hex(16)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        directory = os.open(self._inside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._socket.bind(f"/proc/self/fd/{directory}/socket")  # its own path may be too long for a socket's
        finally:
            os.close(directory)
        (self._inside / "socket").chmod(0o666)
        self._socket.listen(1)

    async def program(self, ports: Sequence[int]) -> Program:
        """What the holder runs. Raises SandboxError."""
        python = await find_interpreter(_source(), _HOME)
        argv = (*python.argv, f"{_DOOR}/listening.py", f"{_DOOR}/socket", *map(str, ports))
        # An image could name a library of its own that our loader would take into our process.
        own = (Bind(self._inside, _DOOR), Bind(self._inside / "nothing", _PRELOAD))
        return Program(argv, {**python.env, _listening.TOKEN: self._token}, (*python.binds, *own))

    async def receive(self, ports: Sequence[int], look: Callable[[], Awaitable[State]]) -> Listeners:
        """The listeners, checked. `look` shows the holder, which may have ended.

        Raises SandboxError, SandboxUnavailable."""
        with anyio.move_on_after(_SECONDS):
            while True:
                with anyio.move_on_after(_LOOK_SECONDS):
                    await anyio.wait_readable(self._socket)
                    break
                if not (state := await look()).running:
                    raise failed(state)
            visitor, _ = self._socket.accept()
            with visitor:
                visitor.setblocking(False)
                await anyio.wait_readable(visitor)
                said, descriptors = _wire.receive(visitor) or (b"", [])
            if not hmac.compare_digest(said, self._token.encode()):
                for descriptor in descriptors:
                    os.close(descriptor)
                raise SandboxError("somebody else than the holder came to hand listeners over")
            return Listeners.adopt(ports, descriptors)
        raise SandboxError(f"the holder of a sandbox handed no listeners over within {_SECONDS:.0f} s")

    def close(self) -> None:
        self._socket.close()


def failed(state: State) -> InfrastructureError:
    """The error for a holder that ended instead of handing listeners over."""
    if state.exit_code == _listening.NO_PORT:
        return SandboxError("the ports of a sandbox's listeners could not be bound in its network")
    why = "our Python does not run in its containers"
    if state.exit_code == _listening.NO_DOOR:
        why = "its containers cannot reach a socket of this host"
    return SandboxUnavailable(f"the container engine cannot hand listeners over: {why}: {state.error}", _REMEDY)


def _source() -> Path:
    return Path(_listening.__file__)
