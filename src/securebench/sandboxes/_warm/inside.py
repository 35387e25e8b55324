"""A fork server, inside its sandbox: a program is loaded once, then processes are made in which it has yet to begin.

Each of them is the first process of a PID namespace of its own and has a user, mount and IPC namespace of its own, a
network to itself, a private `/tmp`, `/dev/shm` and `/proc`, no capability, the sandbox's limits and system call filter,
and no descriptor but its own door: a socket whose other end goes to the engine. It says `ready` there when all of that
holds, or `error TEXT`, and is given its standard streams in return. This server sees none of that and so cannot hand
any of it on to the next.

Messages on the control socket, from the engine: the settings, once, in a memory file; then `F`, make one. To it: `up`;
`child N` with a pidfd and the door; `full TEXT` where there was no room for one; `end N STATUS CPU_US MAX_RSS_KB LEFT`
when it and all its descendants are gone, but for LEFT sockets; `error TEXT`. Standard library only."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import ctypes
import gc
import os
import select
import sys
import time
import types

from securebench.sandboxes._launch.become import (
    check,
    controlled,
    filtered,
    libc,
    limit,
    limits,
    make,
    prctl,
    without_capabilities,
)
from securebench.sandboxes._launch.wire import read_payload, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from securebench.sandboxes._launch.become import Call

# User, PID, mount, IPC. The network is the server's own, which has no interface. Nobody runs there at the same time,
# and where a socket outlives the process that made it, nobody runs there next.
_NAMESPACES = 0x10000000 | 0x20000000 | 0x00020000 | 0x08000000
_CHILD_SETTID, _CHILD_CLEARTID = 0x01000000, 0x00200000
_CLONE = {"x86_64": 56}.get(os.uname().machine, 220)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_GET_TID_ADDRESS = 1, 4, 38, 40
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 8, 32, 4096
_DEVICES = ("pts", "null", "zero", "full", "random", "urandom", "tty")  # mounts of their own beneath /dev
_FATAL = tuple(
    getattr(_signal, name)
    for name in ("SIGHUP", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGPROF", "SIGXCPU")
)
_REHEARSED = 32  # calls after which the interpreter knows how they are made
_CONTROL = 250  # beyond the numbers that programs use by habit
_INODES_PER_MIB = 256
_PAUSES = (0.001, 0.004, 0.015, 0.03, 0.0)  # seconds
_before_fork, _after_fork_in_parent, _after_fork_in_child = (
    ctypes.pythonapi[f"PyOS_{name}"] for name in ("BeforeFork", "AfterFork_Parent", "AfterFork_Child")
)


class Settings:
    """What all processes made here have in common."""

    def __init__(self, items: list[bytes]) -> None:
        self.filter, self.limits, self.own_limits = items[:3]
        self.modules = items[3].decode().split()
        self.cwd, self.start, self.rehearsal = items[6], items[7].decode(), items[8].decode()
        self.arguments = [item.decode() for item in items[9:]]
        user, tmp = int(items[4]), int(items[5])
        mapping = b"%d %d 1" % (user, user)
        self.files = (("setgroups", b"deny"), ("uid_map", mapping), ("gid_map", mapping))
        self.tmp = b"size=%d,nr_inodes=%d,mode=1777" % (tmp, 1024 + _INODES_PER_MIB * (tmp >> 20))


class Server:
    def __init__(self, control: _socket.socket, settings: Settings, tid_address: int) -> None:
        self.control, self.settings, self.tid_address = control, settings, tid_address
        self.space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
        self.children: dict[int, tuple[int, int]] = {}  # pidfd: number, pid
        self.made = 0
        self.walls: list[Call] = []

    def load(self) -> None:
        """What programs import most, and a rehearsal of this one, whose modules are there already. Limits are inherited
        by all."""
        limit(self.settings.limits)
        _end_by_signals()
        for name in self.settings.modules:
            try:
                __import__(name)
            except ImportError:
                continue  # this Python was built without it
        main = types.ModuleType("__main__")
        main.__dict__.update(self.space)
        self.space = main.__dict__
        sys.modules["__main__"] = main
        self.begin = compile(self.settings.start, "<string>", "exec")
        if self.settings.rehearsal:
            sys.modules.pop(self.settings.rehearsal).main()
        self.walls = _walls(self.settings)
        make([("nothing", libc.getpid, ())] * _REHEARSED)
        gc.collect()
        gc.freeze()  # what is never looked at is never copied

    def serve(self) -> None:
        """Until the engine goes away."""
        poller = select.poll()
        poller.register(self.control.fileno(), select.POLLIN)
        while True:
            for fd, _ in poller.poll():
                if fd != self.control.fileno():
                    poller.unregister(fd)
                    self.bury(fd)
                    continue
                message = receive(self.control)
                if message is None:
                    return
                try:
                    poller.register(self.make(), select.POLLIN)
                except OSError as error:  # whoever runs here may have seen to that, and is judged for what it does
                    send(self.control, b"full " + str(error).encode("utf-8", "replace")[:400])

    def make(self) -> int:
        """One process; its pidfd. Raises OSError, and leaves nothing, where processes or descriptors in flight, which
        are counted for all who run here together, do not suffice."""
        ours, door = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        pid = self.fork()
        if pid == 0:
            ours.close()
            _child(self, door)
        door.close()
        pidfd = os.pidfd_open(pid)
        try:
            send(self.control, b"child %d" % (self.made + 1), [pidfd, ours.fileno()])
        except OSError:
            os.kill(pid, _signal.SIGKILL)
            os.wait4(pid, 0)
            os.close(pidfd)
            raise
        finally:
            ours.close()
        self.made += 1
        self.children[pidfd] = self.made, pid
        return pidfd

    def fork(self) -> int:
        """As `os.fork`, into namespaces of its own. The C library is told the new thread's number, as it would be by
        its own `fork`: some of its locks know their owner by it."""
        _before_fork()
        flags = _NAMESPACES | _CHILD_SETTID | _CHILD_CLEARTID | _signal.SIGCHLD
        address = ctypes.c_void_p(self.tid_address)
        # The order of the last two arguments differs between machines; none of them is a thread's storage.
        tail = (address, None) if _CLONE == 56 else (None, address)
        pid = int(libc.syscall(_CLONE, ctypes.c_ulong(flags), None, None, *tail))
        if pid == 0:
            _after_fork_in_child()
            return 0
        _after_fork_in_parent()
        check(0 if pid > 0 else -1, "make namespaces")
        return pid

    def bury(self, pidfd: int) -> None:
        number, pid = self.children.pop(pidfd)
        _, status, usage = os.wait4(pid, 0)
        os.close(pidfd)
        cpu = int((usage.ru_utime + usage.ru_stime) * 1_000_000)
        send(self.control, b"end %d %d %d %d %d" % (number, status, cpu, usage.ru_maxrss, self.left()))

    def left(self) -> int:
        """Sockets of whoever ran here. One that ended at once may have been faster than the engine, which has its end
        of the door still to close."""
        left = 0
        for seconds in _PAUSES:
            left = max(0, _sockets() - 2 * len(self.children))  # each of those that wait has its door
            if not left:
                break
            time.sleep(seconds)
        return left


def _sockets() -> int:
    """How many there are in this network: those that hold each other in their queues live until the kernel looks for
    such, and their names are there for all to read."""
    with open("/proc/net/unix", "rb", 0) as rows:  # noqa: PTH123 — standard library, and little of it
        return rows.read().count(b"\n") - 1


def _end_by_signals() -> None:
    """What ends a program by default ends it here too. The kernel delivers no such signal to the first process of a
    namespace unless it has a handler; the handler is the C library's own exit."""
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    leave = ctypes.cast(libc._exit, ctypes.c_void_p)
    for number in _FATAL:
        libc.signal(number, leave)


def _child(server: Server, door: _socket.socket) -> None:
    """In the new process. Never returns."""
    code = 1
    try:
        try:
            expendable = _put_up(server)
        except OSError as error:
            send(door, b"error " + str(error).encode("utf-8", "replace")[:400])
            os._exit(1)
        server.control.close()
        send(door, b"ready")
        message = receive(door)
        if message is None:
            os._exit(0)  # it was not needed
        os.write(expendable, b"1000")  # where memory runs out, it is neither the server nor the next that has to go
        for number, fd in enumerate(message[1]):
            os.dup2(fd, number, inheritable=True)
        os.closerange(3, 1 << 16)
        door.detach()
        code = _run(server)
    finally:
        os._exit(code)


def _walls(settings: Settings) -> list[Call]:
    """Everything that a new process does to itself once it is somebody, made ready before there is one: whatever a
    process looks at or makes for the first time costs it pages of its own."""
    calls: list[Call] = []
    for place in (b"/tmp", b"/dev/shm"):
        arguments = (b"tmpfs", place, b"tmpfs", _MS_NOSUID | _MS_NODEV, settings.tmp)
        calls.append(("mount a private /tmp", libc.mount, arguments))
    flags = _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    calls.append(("mount a private /proc", libc.mount, (b"proc", b"/proc", b"proc", flags, None)))
    # Whoever runs here next has the same ones: a time or a mode set on them would be a message.
    flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NOEXEC
    for name in _DEVICES:
        calls.append(("protect /dev/" + name, libc.mount, (None, b"/dev/" + name.encode(), None, flags, None)))
    calls.append(("begin a session", libc.setsid, ()))
    calls.append(("set the mask of new files", libc.umask, (0o022,)))
    calls.append(("go to its directory", libc.chdir, (settings.cwd,)))
    calls += limits(settings.own_limits)
    calls.append(controlled(_PR_SET_NO_NEW_PRIVS, 1, "refuse new privileges"))
    calls += without_capabilities()
    calls.append(controlled(_PR_SET_PDEATHSIG, _signal.SIGKILL, "die with the fork server"))
    calls.append(controlled(_PR_SET_DUMPABLE, 1, "own its own files in /proc"))
    calls.append(filtered(settings.filter))
    return calls


def _put_up(server: Server) -> int:
    """The walls; the file through which the process makes itself the first to go."""
    # The outer /proc, where this process is still named; the one of its own will be read-only.
    for name, text in server.settings.files:
        fd = os.open("/proc/self/" + name, os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, text)
        os.close(fd)
    expendable = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    make(server.walls)
    return expendable


def _run(server: Server) -> int:
    """The program's exit code, as the interpreter would give it."""
    sys.argv = ["-c", *server.settings.arguments]
    try:
        exec(server.begin, server.space)  # noqa: S102 — our own text
        code: Any = 0
    except SystemExit as end:
        code = end.code
        if code is not None and not isinstance(code, int):
            sys.stderr.write(str(code) + "\n")
            code = 1
    except BaseException:  # noqa: BLE001 — whatever it is, it ends the program
        sys.excepthook(*sys.exc_info())
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    return (code or 0) & 0xFF


def main() -> None:
    control = _socket.socket(fileno=_high(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        message = receive(control)
        if message is None:
            return
        address = ctypes.c_void_p()
        check(prctl(_PR_GET_TID_ADDRESS, ctypes.addressof(address)), "ask where the thread's number is kept")
        server = Server(control, Settings(read_payload(message[1][0])), address.value or 0)
        server.load()
        send(control, b"up")
        server.serve()
    except Exception as error:  # noqa: BLE001 — it is told to the engine, which discards this server
        send(control, b"error " + repr(error).encode("utf-8", "replace")[:400])


def _high(fd: int) -> int:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _CONTROL)
