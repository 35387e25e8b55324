"""Our end of one fork server: starts it in a sandbox, orders processes from it, and hears of their ends.

A server that says anything unexpected, or nothing in time, is discarded with all it made."""

from __future__ import annotations

import array
import os
import resource
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskStatus

from securebench._one_file import call_main, our_modules
from securebench._proc import Capture, Pipe
from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import limits as _limits
from securebench.sandboxes._bubblewrap.args import (
    Descriptors,
    check_mounts,
    command_args,
    environment,
    file_system_args,
    namespace_args,
)
from securebench.sandboxes._bubblewrap.cgroups import Group, group
from securebench.sandboxes._bubblewrap.compiled import compiled
from securebench.sandboxes._bubblewrap.gate import Held, Launch, hold
from securebench.sandboxes._bubblewrap.host import Host
from securebench.sandboxes._bubblewrap.identity import lease_identity
from securebench.sandboxes._bubblewrap.rootfs import layout_for
from securebench.sandboxes._bubblewrap.staging import reachable
from securebench.sandboxes._launch import wire as _wire
from securebench.sandboxes._launch.client import memory_file, real
from securebench.sandboxes._outcome import Ending, from_wait_status
from securebench.sandboxes._seccomp import Filter, build_filter, build_server_filters
from securebench.sandboxes.base import Command, PythonProgram, SandboxSpec

_INSIDE = our_modules(("sandboxes._launch.become", "sandboxes._launch.wire", "sandboxes._warm.inside"), "warm_")
_START_SECONDS = 30.0
_CONTROL_BYTES = 4096
_OWN_MEMORY = 32 << 20  # of the server and of whoever waits there
_SHARE_LEFT = 32  # the part of its memory that need not be free for whoever comes next
# Not for the server as well: processor time adds up in it, and whether a descriptor may be sent is decided by what the
# sender may have open and what its user, under which all run, has in flight.
_OWN_LIMITS = (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE)
OWN_PROCESSES = 3
"""Processes of ours in a server's control group: bubblewrap, the server, and one that waits for its turn."""

# What programs in this field import most; what is not there is passed over.
MODULES = "typing collections re math itertools functools operator string random heapq bisect copy datetime dataclasses"


@dataclass(slots=True)
class Child:
    """A process that waits behind its walls, then runs once. `ended` is set when it and its descendants are gone."""

    number: int
    pidfd: int
    door: socket.socket
    ended: anyio.Event = field(default_factory=anyio.Event)
    ending: Ending | None = None  # None while it lives, and where the server was lost
    cpu_seconds: float = 0.0
    peak_memory: int = 0

    @property
    def pid(self) -> int:
        """Its number on this host, for as long as it has not ended."""
        with suppress(OSError, ValueError), open(f"/proc/self/fdinfo/{self.pidfd}") as info:  # noqa: PTH123
            return int(next(line for line in info if line.startswith("Pid:")).split()[1])
        return -1

    async def ready(self) -> None:
        """Wait until its walls stand. Raises SandboxError where they do not."""
        with anyio.move_on_after(_START_SECONDS):
            while True:
                try:
                    said = self.door.recv(_CONTROL_BYTES)
                except BlockingIOError:
                    await anyio.wait_readable(self.door)
                    continue
                except OSError:
                    said = b""
                if said == b"ready":
                    return
                words = said.removeprefix(b"error ").decode("utf-8", "replace") or "it ended"
                raise SandboxError(f"a warm room could not be walled in: {words}")
        raise SandboxError(f"a warm room was not ready within {_START_SECONDS:.0f} s")

    def begin(self, streams: tuple[int, int, int]) -> None:
        """Give it its streams, and so let it begin. Raises SandboxError."""
        try:
            self.door.sendmsg([b"b"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", real(streams)))])
        except OSError as error:
            raise SandboxError(f"a warm room ended before it began: {error.strerror}") from error
        self.door.close()

    def kill(self) -> None:
        with suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def forget(self) -> None:
        """Close what is ours of it. Idempotent."""
        self.door.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


class ForkServer:
    """One server. `live` is its whole life, in a task of its own; between two uses it has nobody but a child that
    waits."""

    def __init__(self, host: Host, spec: SandboxSpec, program: PythonProgram) -> None:
        self.host, self.spec, self.program = host, spec, program
        self.used = 0  # times somebody ran here
        self.lost: str | None = None
        self.fingerprint: Mapping[str, str] = {}
        self.group: Group | None = None
        self.inner = Filter(b"")
        self._control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        self._ready: deque[Child] = deque()
        self._arrival = anyio.Event()
        self._living: dict[int, Child] = {}
        self._scope = anyio.CancelScope()
        self._gone = anyio.Event()
        self._stderr: Pipe | None = None

    async def live(self, *, task_status: TaskStatus[None]) -> None:
        """Start it, report `started` when it is up, and listen to it until `close`. Raises SandboxError from the start
        only; what goes wrong later is in `lost`."""
        up = False
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    await self._start(stack)
                    up = True
                    self._order()
                    task_status.started()
                    while True:
                        self._heard(*await self._receive())
        except (SandboxError, OSError) as error:
            self.lost = str(error)
            if not up:
                raise
        finally:
            self.lost = self.lost or "it was closed"
            self._control.close()
            self._theirs.close()
            self._bury_all()
            self._arrival.set()
            self._gone.set()

    @property
    def clean(self) -> bool:
        """Whether no memory of whoever ran here before is left in its group: the kernel frees some of it later than it
        ends processes, and whoever comes next would be short of it."""
        most = _OWN_MEMORY + self.spec.limits.memory // _SHARE_LEFT
        return self.group is None or not self.group.holds_more_than(most)

    async def take(self) -> Child:
        """A process that is behind its walls; the next one is ordered. Raises SandboxError."""
        while not self._ready:
            if self.lost is not None:
                raise SandboxError(f"a fork server is gone: {self.lost}")
            await self._arrival.wait()
        child = self._ready.popleft()
        self.used += 1
        try:
            await child.ready()
            self._order()
        except BaseException:
            child.kill()
            child.forget()
            raise
        return child

    async def close(self) -> None:
        """End it and everything it made. Idempotent."""
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._gone.wait()

    def discard(self) -> None:
        """`close` without waiting."""
        self.lost = self.lost or "it was discarded"
        self._scope.cancel()

    async def _start(self, stack: AsyncExitStack) -> None:
        resources = stack.enter_context(ExitStack())
        identity = resources.enter_context(lease_identity())
        spec = reachable(self.spec, identity, resources)
        check_mounts(spec)
        limits = spec.limits
        self.group = resources.enter_context(group(limits, extra_pids=OWN_PROCESSES))
        counted = self.group is not None
        rules = build_filter(spec.network, deny_unaccounted=not counted)
        self.fingerprint = {**self.host.fingerprint(identity, rules.sha256), "warm": "fork server"}
        outer, self.inner = build_server_filters(spec.network, deny_unaccounted=not counted)
        wanted = _limits.bounds(limits, memory_counted=counted)
        self._stderr = stderr = Pipe.for_reading()
        resources.callback(stderr.close)
        modules = (*self.program.modules, *self.program.rehearsal, *_INSIDE)
        loaded = PythonProgram(modules, call_main(_INSIDE))
        launch = Launch(
            bwrap=self.host.bwrap,
            uid=identity.uid,
            limits=b"",
            arguments=_arguments(spec),
            command=(await compiled(self.host, spec, Command(loaded.argv, python=loaded))).argv,
            stdin=self._theirs.fileno(),
            stdout=subprocess.DEVNULL,
            groups=() if self.group is None else self.group.entrances,
        )
        held = hold(launch, stderr)
        stack.push_async_callback(held.close)
        self._theirs.close()
        await held.arrive()
        held.release(outer.program)
        self._send_settings(wanted)
        with anyio.move_on_after(_START_SECONDS):
            words, _ = await self._receive(held)
            if words != ["up"]:
                raise SandboxError(f"a fork server did not start: {' '.join(words)}")
            return
        raise SandboxError(f"a fork server did not start within {_START_SECONDS:.0f} s")

    def _send_settings(self, wanted: _limits.Bounds) -> None:
        spec, program = self.spec, self.program
        own = {kind: bound for kind, bound in wanted.items() if kind in _OWN_LIMITS}
        shared = {kind: bound for kind, bound in wanted.items() if kind not in own}
        items = [self.inner.program, _limits.as_bytes(shared), _limits.as_bytes(own), MODULES.encode()]
        items += [b"%d" % spec.user, b"%d" % max(spec.limits.tmp, 1), os.fsencode(spec.cwd)]
        items += [program.start.encode(), (program.rehearsal[-1][0] if program.rehearsal else "").encode()]
        items += [word.encode() for word in program.arguments]
        payload = memory_file(_wire.pack(items))
        try:
            _wire.send(self._control, b"settings", [payload])
        except OSError as error:
            raise SandboxError(f"a fork server ended at once: {self._complaint()}") from error
        finally:
            os.close(payload)

    def _order(self) -> None:
        try:
            self._control.send(b"F")
        except OSError as error:
            raise SandboxError(f"a fork server is gone: {error.strerror}") from error

    def _heard(self, words: list[str], fds: list[int]) -> None:
        """Raises SandboxError for what no fork server says; nothing of it is kept then."""
        kind, *rest = words or [""]
        numbers = [int(word) for word in rest if word.isdecimal()]
        whole = len(numbers) == len(rest)
        match kind, numbers:
            case "child", [number] if whole and len(fds) == 2 and (door := _door(fds[1])) is not None:
                self._living[number] = child = Child(number, fds[0], door)
                self._ready.append(child)
                self._arrival.set()
                self._arrival = anyio.Event()
            case "full", _:
                self.lost = f"it could make no further room: {' '.join(rest)}"
                self._arrival.set()
            case "end", [number, status, cpu, peak, left] if whole and number in self._living:
                child = self._living.pop(number)
                if child in self._ready:  # the host may have run out of memory; whoever runs here is not to blame
                    self._ready.remove(child)
                    child.forget()
                    self.lost = "a room ended while it waited"
                elif left:
                    self.lost = "sockets were left in it"
                child.ending = from_wait_status(status)
                child.cpu_seconds, child.peak_memory = cpu / 1e6, peak * 1024
                child.ended.set()
            case _:
                for fd in fds:
                    os.close(fd)
                raise SandboxError(f"a fork server said {' '.join(words)[:400]!r}")

    async def _receive(self, held: Held | None = None) -> tuple[list[str], list[int]]:
        while True:
            try:
                body, fds = _wire.receive(self._control, _CONTROL_BYTES) or (b"", [])
            except BlockingIOError:
                await anyio.wait_readable(self._control)
                continue
            except OSError:
                body, fds = b"", []
            if not body:
                if held is not None:
                    await held.monitor.ended()
                raise SandboxError(f"a fork server ended: {self._complaint()}")
            return body.decode("utf-8", "replace").split(), fds

    def _complaint(self) -> str:
        if self._stderr is None or self._stderr.read < 0:
            return "it gave no reason"
        capture = Capture(keep=4096, flood=4096)
        capture.finish(self._stderr.read)
        return bytes(capture.data).decode("utf-8", "replace").strip()[-1000:] or "it gave no reason"

    def _bury_all(self) -> None:
        """The server is gone, and so is everything it made."""
        for child in self._living.values():
            child.ended.set()
            if child in self._ready:
                child.forget()
        self._living.clear()
        self._ready.clear()


def _door(fd: int) -> socket.socket | None:
    """The socket that a descriptor is, None where it is none."""
    try:
        door = socket.socket(fileno=fd)
    except OSError:
        return None
    door.setblocking(False)
    return door


def _arguments(spec: SandboxSpec) -> Callable[[Descriptors, Callable[[bytes], int]], list[str]]:
    env, layout = environment(spec), layout_for(spec)

    def arguments(fds: Descriptors, fd_for: Callable[[bytes], int]) -> list[str]:
        return [
            *namespace_args(disable_userns=False, network=spec.network),
            "--as-pid-1",
            *file_system_args(spec, layout, fd_for, forks=True),
            *command_args(spec, env, "/", fds),
        ]

    return arguments
