"""The launcher of sessions: runs commands inside a sandbox that bubblewrap built and holds.

Started on the host by `launcher.py` in an isolated interpreter; standard library only, and nothing of it is needed
inside. The first process only forks: one launcher per session, because starting an interpreter costs ten times a
fork. It never sees what a session does, so nothing of one can reach another through it.

A launcher becomes the sandbox's user, enters the namespaces of the held process, fills the scratch directories, and
then starts one command at a time. It stays outside the sandbox's PID namespace, so nothing inside can see, signal or
trace it, and it sees the true wait status of what it started.

One message is one packet. From the engine, with the payload in a memory file that comes as first descriptor:
`J` join, `R` run, `G` the started command may go on, `K` end everything inside but the first process (no answer).
Back: `ok` (with scratch descriptors), `pid N`, `end STATUS ERRNO STAGE CPU_US MAX_RSS_KB`, `error TEXT`.
When the control socket closes, the launcher ends everything and exits.
"""

from __future__ import annotations

# The C modules beneath socket and signal: the Python ones cost more to import than all the rest of this file.
import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import array
import ctypes
import fcntl
import os
import resource
import select
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_ALL_NAMESPACES = 0x7E020000  # user, pid, net, ipc, uts, cgroup, mount
_CAPABILITY_VERSION_3 = 0x20080522
_MAX_FDS = 64

_SEED_HEADER = struct.Struct("<BIqIQ")  # as in seed.py
_DIRECTORY, _FILE, _TARGET, _END = 1, 2, 3, 4

STAGES = ("start", "enter its working directory", "run")

_libc = ctypes.CDLL(None, use_errno=True)


def pack(items: list[bytes]) -> bytes:
    """Length-prefixed byte strings, as `unpack` reads them."""
    return b"".join(len(item).to_bytes(4, "little") + item for item in items)


def unpack(data: bytes) -> list[bytes]:
    """The inverse of `pack`."""
    items, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        items.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return items


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(option: int, value: int = 0, third: int = 0) -> int:
    return int(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), ctypes.c_ulong(0), ctypes.c_ulong(0)))


class Joiner:
    """The state of one session on this side."""

    def __init__(self, control: _socket.socket) -> None:
        self._control = control
        self._init = -1
        self._filter = b""

    def serve(self) -> None:
        """Answer messages until the engine goes away."""
        while (message := self._receive()) is not None:
            kind, items, fds = message
            if kind == b"J":
                self._join(items, fds)
            elif kind == b"R":
                self._run(items, fds)
            elif kind == b"K":
                self._sweep()

    def end_all(self) -> None:
        """Kill the sandbox's first process, and so everything inside."""
        if self._init >= 0:
            try:
                _signal.pidfd_send_signal(self._init, _signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return

    def _receive(self) -> tuple[bytes, list[bytes], list[int]] | None:
        size = array.array("i").itemsize * _MAX_FDS
        body, ancillary, _, _ = self._control.recvmsg(16, _socket.CMSG_SPACE(size), _socket.MSG_CMSG_CLOEXEC)
        if not body:
            return None
        fds = array.array("i")
        for level, kind, data in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        received = list(fds)
        if not received:
            return body, [], []
        with open(received[0], "rb") as payload:  # noqa: PTH123
            return body, unpack(payload.read()), received[1:]

    def _send(self, body: bytes, fds: list[int] | None = None) -> None:
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self._control.sendmsg([body], rights)

    def _join(self, items: list[bytes], fds: list[int]) -> None:
        uid, self._filter, targets = int(items[0]), items[1], items[2:]
        self._init, seed = fds
        if uid >= 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        # Not readable or traceable through /proc by what runs inside, between fork and exec either.
        _check(_prctl(_PR_SET_DUMPABLE, 0), "make the launcher private")
        _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "refuse new privileges")
        _check(_libc.setns(self._init, _ALL_NAMESPACES), "join the sandbox's namespaces")
        os.umask(0o022)
        roots = [os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for target in targets]
        with open(seed, "rb", buffering=1 << 20) as stream:  # noqa: PTH123
            _unpack_seed(stream.read, dict(zip(targets, roots, strict=True)))
        self._send(b"ok", roots)
        for root in roots:
            os.close(root)

    def _run(self, items: list[bytes], fds: list[int]) -> None:
        gate_read, gate_write = os.pipe()
        fault_read, fault_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(gate_write)
            self._become(items, fds, gate_read, fault_write)
        os.close(gate_read)
        os.close(fault_write)
        for fd in fds:
            os.close(fd)
        self._send(b"pid %d" % pid)
        pidfd = os.pidfd_open(pid)
        self._until_end(pidfd, gate_write)
        _, status, usage = os.wait4(pid, 0)
        fault = os.read(fault_read, 8)
        os.close(fault_read)
        os.close(pidfd)
        stage, number = struct.unpack("<ii", fault) if len(fault) == 8 else (0, 0)
        cpu = int((usage.ru_utime + usage.ru_stime) * 1_000_000)
        self._send(b"end %d %d %d %d %d" % (status, number, stage, cpu, usage.ru_maxrss))

    def _until_end(self, pidfd: int, gate: int) -> None:
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        poller.register(self._control.fileno(), select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if self._control.fileno() in ready:
                message = self._receive()
                if message is None:
                    raise EOFError
                if message[0] == b"G":
                    os.write(gate, b"g")
                    os.close(gate)
                    gate = -1
                elif message[0] == b"K":
                    self._sweep()
            elif pidfd in ready:
                if gate >= 0:
                    os.close(gate)
                return

    def _sweep(self) -> None:
        """Kill every process inside but the first. One call kills them all at once, so no fork can outrun it.

        Where a limit of the host leaves no room even for that call's process, the first is killed, and so all."""
        try:
            pid = os.fork()
        except OSError:
            self.end_all()
            return
        if pid == 0:
            try:
                os.kill(-1, _signal.SIGKILL)
            except OSError:
                pass
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    def _become(self, items: list[bytes], fds: list[int], gate: int, fault: int) -> None:
        """In the new process: wait for the word, give everything up, become the command. Never returns."""
        stage = 0
        try:
            _prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL)
            if os.read(gate, 1) != b"g":
                os._exit(1)
            cwd, count, limits, numbers = items[0], int(items[1]), items[2], items[3]
            argv, env = items[4 : 4 + count], items[4 + count :]
            os.setsid()
            for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
                _signal.signal(number, _signal.SIG_DFL)  # Python ignores them, and that would be inherited
            fault = _place(fds, [0, 1, 2, *map(int, numbers.split())], fault)
            stage = 1
            os.chdir(cwd)
            stage = 0
            _limit(limits)
            _drop_capabilities()
            _load_filter(self._filter)
            stage = 2
            _execute(argv, dict(item.split(b"=", 1) for item in env))
        except OSError as error:
            os.write(fault, struct.pack("<ii", stage, error.errno or 0))
        finally:
            os._exit(127)


def _place(fds: list[int], numbers: list[int], fault: int) -> int:
    """Put each descriptor under its number, inherited; the new `fault`.

    Everything else closes at exec: Python makes every descriptor so, and we received ours so.
    """
    above = max(numbers) + 1
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in (*fds, fault)]
    for fd, number in zip(high, numbers, strict=False):
        os.dup2(fd, number, inheritable=True)
    return high[-1]


def _limit(limits: bytes) -> None:
    for word in limits.split():
        kind, soft, hard = map(int, word.split(b":"))
        ceiling = resource.getrlimit(kind)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(kind, (soft, hard))


def _drop_capabilities() -> None:
    for capability in range(64):
        if _prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # past the last one this kernel knows
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "drop capabilities")


def _load_filter(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    loaded = Program(len(program) // 8, program)
    _check(
        _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(loaded), ctypes.c_ulong(0), ctypes.c_ulong(0)),
        "load the system call filter",
    )


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    if b"/" in argv[0]:
        os.execve(argv[0], argv, env)  # noqa: S606
    refusal: OSError = FileNotFoundError(2, "no such program")
    for folder in env.get(b"PATH", b"").split(b":"):
        try:
            os.execve((folder or b".") + b"/" + argv[0], argv, env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = error
    raise refusal


def _unpack_seed(read: Callable[[int], bytes], roots: dict[bytes, int]) -> None:
    """Write the tree that `seed.py` sent. Nothing inside can have planted a link yet: no command has run."""
    root = -1
    times: list[tuple[int, bytes, int, int]] = []
    while True:
        kind, mode, mtime, length, size = _SEED_HEADER.unpack(_exactly(read, _SEED_HEADER.size))
        path = _exactly(read, length)
        if kind == _END:
            break
        if kind == _TARGET:
            root = roots[path]
        elif kind == _DIRECTORY:
            if path != b".":
                os.mkdir(path, 0o700, dir_fd=root)
            times.append((root, path, mode, mtime))
        elif kind == _FILE:
            _write_file(read, root, path, mode, mtime, size)
    for root, path, mode, mtime in reversed(times):
        if path != b".":
            os.chmod(path, mode, dir_fd=root)
        os.utime(path, ns=(mtime, mtime), dir_fd=root)


def _write_file(read: Callable[[int], bytes], root: int, path: bytes, mode: int, mtime: int, size: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=root)
    with open(fd, "wb", buffering=0) as file:  # noqa: PTH123
        while size:
            piece = _exactly(read, min(size, 1 << 20))
            size -= len(piece)
            while piece:
                piece = piece[file.write(piece) :]
        os.fchmod(fd, mode)
        os.utime(fd, ns=(mtime, mtime))


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) != size:
        raise EOFError
    return bytes(data)


def _launch(control: _socket.socket) -> int:
    """Serve one session; any failure of ours is told to the engine in words."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    sys.excepthook = lambda _kind, error, _trace: _tell(control, repr(error))
    joiner = Joiner(control)
    try:
        control.sendmsg([b"pid %d" % os.getpid()])
        joiner.serve()
    except EOFError:
        return 0
    except OSError as error:
        _tell(control, str(error))
        return 1
    finally:
        joiner.end_all()
    return 0


def _tell(control: _socket.socket, text: str) -> None:
    try:
        control.sendmsg([b"error " + text.encode("utf-8", "replace")[:400]])
    except OSError:
        return  # the engine is gone, and with it whoever would read this


def main() -> int:
    """Fork a launcher for every control socket that arrives on descriptor 0, until that closes."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # launchers are watched by the engine, not by us
    requests = _socket.socket(fileno=0)
    while True:
        size = array.array("i").itemsize
        body, ancillary, _, _ = requests.recvmsg(16, _socket.CMSG_SPACE(size), _socket.MSG_CMSG_CLOEXEC)
        if not body:
            return 0
        fd = int.from_bytes(ancillary[0][2][:size], sys.byteorder)
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, requests.detach())
            os.close(null)
            return _launch(_socket.socket(fileno=fd))
        os.close(fd)


if __name__ == "__main__":
    sys.exit(main())
