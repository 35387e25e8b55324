"""The only place in SecureBench that starts processes; those of sandboxes are forked by one that was started here.

Everything goes through `subprocess.Popen` on its vfork path: no `preexec_fn`, no `user=` (both make the start of a
process cost a copy of our page tables), every descriptor closed but those named. Waiting is done through a pidfd,
so no thread, no signal handler and no child watcher is involved.

A process must be started from the thread that runs the event loop: Linux ties a "die with parent" request to the
thread that made the child, not to the process.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

import anyio

from securebench.errors import InfrastructureError

CHUNK = 65536


class Process:
    """A started process. Whoever starts one calls `close`, which kills and reaps whatever is left of it."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.pid = popen.pid
        self._pidfd = os.pidfd_open(popen.pid)

    async def wait(self) -> int:
        """Its exit status, negative for a signal. May be awaited again."""
        while (status := self._popen.poll()) is None:
            await anyio.wait_readable(self._pidfd)
        return status

    def kill(self) -> None:
        """Send SIGKILL; a no-op once it was reaped."""
        self._popen.kill()

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def close_now(self) -> None:
        """`close` for the end of the program, where no event loop runs any more."""
        if self._pidfd >= 0:
            self.kill()
            self._popen.wait()
            os.close(self._pidfd)
            self._pidfd = -1

    async def close(self) -> None:
        """Kill, reap and forget. Idempotent and not interrupted by cancellation."""
        if self._pidfd < 0:
            return
        with anyio.CancelScope(shield=True):
            self.kill()
            await self.wait()
        os.close(self._pidfd)
        self._pidfd = -1


def _is_readable(fd: int) -> bool:
    """Now. Not by `select`, which cannot look at a descriptor beyond 1023."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(0))


def _state(pid: int) -> str:
    """The state letter of a process, X when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


@cache
def _hear_of_children() -> None:
    """Once per process: where our own parent left SIGCHLD ignored, the kernel would throw exit codes away."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        libc = ctypes.CDLL(None)
        libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
        libc.signal(signal.SIGCHLD, None)  # Python's own call works in the main thread only


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    cwd: Path | str = "/",
) -> Process:
    """Start `argv` with exactly these descriptors and this environment. Raises InfrastructureError."""
    _hear_of_children()
    try:
        popen = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(pass_fds),
            close_fds=True,
            cwd=cwd,
            # A Ctrl-C is for us, who then end everything in order; and no tool may ask at the terminal.
            start_new_session=True,
        )
    except OSError as error:
        raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror or error}") from error
    return Process(popen)


@dataclass(slots=True)
class Capture:
    """Reads one stream: keeps the first `keep` bytes, counts all of them, and reports a flood once.

    `on_bytes` sees the kept bytes as they arrive; `on_flood` is called when more than `flood` bytes came.
    """

    keep: int
    flood: int
    on_bytes: Callable[[bytes], None] | None = None
    on_flood: Callable[[], None] | None = None
    data: bytearray = field(default_factory=bytearray)
    total: int = 0

    async def drain(self, fd: int) -> None:
        """Read `fd` (non-blocking) until every writer has closed it."""
        while True:
            if not self._take(fd):
                return
            await anyio.wait_readable(fd)

    @contextmanager
    def listening(self, fd: int, on_error: Callable[[Exception], None]) -> Iterator[None]:
        """As `drain`, for as long as the context lasts and without a task of its own; what a callback of ours raises is
        given to `on_error`."""
        loop = asyncio.get_running_loop()

        def arrived() -> None:
            try:
                if self._take(fd):
                    return
            except Exception as error:  # noqa: BLE001 — the event loop would only log it
                on_error(error)
            loop.remove_reader(fd)

        loop.add_reader(fd, arrived)
        try:
            yield
        finally:
            loop.remove_reader(fd)

    def finish(self, fd: int) -> None:
        """Take what is in the pipe now, without waiting for writers that may live on."""
        self._take(fd)

    def _take(self, fd: int) -> bool:
        """Read what is there; false at end of stream. Bounded, so that a flood cannot hold the event loop."""
        for _ in range(16):
            try:
                chunk = os.read(fd, CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._add(chunk)
        return True

    def _add(self, chunk: bytes) -> None:
        before = self.total
        self.total += len(chunk)
        kept = chunk[: max(0, self.keep - before)]
        self.data += kept
        if kept and self.on_bytes is not None:
            self.on_bytes(kept)
        if before <= self.flood < self.total and self.on_flood is not None:
            self.on_flood()


async def feed(fd: int, data: bytes) -> None:
    """Write all of `data` to a non-blocking pipe; a reader that went away is not an error."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            await anyio.wait_writable(fd)
        except BrokenPipeError:
            return


@dataclass(slots=True)
class Pipe:
    """Both ends of a pipe; an end that was closed is -1. Ours to read or write is always non-blocking."""

    read: int
    write: int

    @classmethod
    def for_reading(cls) -> Pipe:
        """A pipe whose read end is ours."""
        pipe = cls(*os.pipe())
        os.set_blocking(pipe.read, False)
        return pipe

    @classmethod
    def for_writing(cls) -> Pipe:
        """A pipe whose write end is ours."""
        pipe = cls(*os.pipe())
        os.set_blocking(pipe.write, False)
        return pipe

    def close_read(self) -> None:
        if self.read >= 0:
            os.close(self.read)
            self.read = -1

    def close_write(self) -> None:
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    def close(self) -> None:
        self.close_read()
        self.close_write()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a trusted tool did. `status` is negative for a signal and None when its time was up."""

    status: int | None
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        return self.status == 0


TOOL_ENV = MappingProxyType(
    {
        "PATH": os.environ.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": os.environ.get("HOME", "/"),
    }
)


async def run_tool(
    argv: Sequence[str],
    timeout: float,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] = TOOL_ENV,
    cwd: Path | str = "/",
    limit: int = 64 * 1024 * 1024,
) -> ToolResult:
    """Run a trusted tool to its end, at most `timeout` seconds, keeping at most `limit` bytes per stream.

    Raises InfrastructureError when it cannot be started.
    """
    pipes = [Pipe.for_writing(), Pipe.for_reading(), Pipe.for_reading()]
    out, err = Capture(limit, limit), Capture(limit, limit)
    process: Process | None = None
    status: int | None = None
    try:
        process = start(argv, env=env, cwd=cwd, stdin=pipes[0].read, stdout=pipes[1].write, stderr=pipes[2].write)
        pipes[0].close_read()
        pipes[1].close_write()
        pipes[2].close_write()

        async def feed_stdin() -> None:
            await feed(pipes[0].write, stdin)
            pipes[0].close_write()

        with anyio.move_on_after(timeout):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(feed_stdin)
                tasks.start_soon(out.drain, pipes[1].read)
                tasks.start_soon(err.drain, pipes[2].read)
                status = await process.wait()
    finally:
        if process is not None:
            await process.close()
        for pipe in pipes:
            pipe.close()
    return ToolResult(status, bytes(out.data), bytes(err.data))


def run_tool_sync(
    argv: Sequence[str],
    timeout: float,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] = TOOL_ENV,
    cwd: Path | str = "/",
) -> ToolResult:
    """`run_tool` for code that runs outside an event loop. Raises InfrastructureError when it cannot start."""
    _hear_of_children()
    try:
        done = subprocess.run(
            list(argv), input=stdin, env=dict(env), cwd=cwd, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as expired:
        return ToolResult(None, expired.stdout or b"", expired.stderr or b"")
    except OSError as error:
        raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror or error}") from error
    return ToolResult(done.returncode, done.stdout, done.stderr)


class Forked:
    """A part of our own work done by a forked copy of this process, which answers in bytes.

    For plain computing in a process without threads or an event loop; nothing of a stranger's may be in `job`."""

    def __init__(self, job: Callable[[], bytes]) -> None:
        self._read, write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                os.close(self._read)
                with os.fdopen(write, "wb") as pipe:
                    pipe.write(job())
                status = 0
            finally:
                os._exit(status)  # nothing of the parent's may be flushed, closed or handled twice
        os.close(write)

    def result(self) -> bytes:
        """Its answer. Raises InfrastructureError when it failed."""
        with os.fdopen(self._read, "rb") as pipe:
            data = pipe.read()
        if os.waitpid(self._pid, 0)[1] != 0:
            raise InfrastructureError("a part of the work failed in another process; try again")
        return data


class Handle:
    """A pidfd on a process somebody else started: signal it, wait for its end, never mistake its successor for it."""

    def __init__(self, pid: int, pidfd: int | None = None) -> None:
        """Takes over a `pidfd` that came with the number; else raises ProcessLookupError when it is gone already."""
        self.pid = pid
        self._pidfd = os.pidfd_open(pid) if pidfd is None else pidfd

    def fileno(self) -> int:
        return self._pidfd

    @property
    def awake(self) -> bool:
        """Whether it lives and was not stopped."""
        if self._pidfd < 0 or _is_readable(self._pidfd):
            return False
        return _state(self.pid) not in "TtZX"

    def kill(self) -> None:
        """Send SIGKILL; a process that has ended is not an error."""
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def ended(self) -> None:
        """Wait until it has ended; for the first process of a pid namespace, until the namespace is empty."""
        if self._pidfd >= 0:
            await anyio.wait_readable(self._pidfd)

    async def children(self) -> list[int]:
        """Its children, after stopping it for good, so that the list can neither grow nor go stale."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGSTOP)
        while (state := _state(self.pid)) not in "TZX":
            await anyio.sleep(0.001)
        if state != "T":
            return []
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]

    def reap(self) -> float | None:
        """Reap it if it has ended and was left to us, as to a subreaper; the processor time of it and its children."""
        if self._pidfd < 0:
            return None
        try:
            if os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            usage = os.wait4(self.pid, 0)[2]
        except ChildProcessError:
            return None
        return usage.ru_utime + usage.ru_stime

    def close(self) -> None:
        """Forget it, without reaping: it may be somebody else's to wait for."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
