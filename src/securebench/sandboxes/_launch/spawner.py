"""The process that makes the processes of sandboxes. Started once per engine; forks on request.

An interpreter costs ten times a fork to start, and an engine has threads, memory and inherited signals that no
sandbox should start from. This process has none of that. It ends when the engine does, and everything it started
asked the kernel to end with it.

A request is one packet with descriptors: `S` start a program (a memory file with its words, what it inherits, the
control groups it enters; answered with `pid N` and a pidfd), `L` serve a session of bubblewrap, `K` serve a guarded
session (both: the control socket).
Payloads are read by the forked process only: nothing of one sandbox stays here for the next to inherit.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import os
import sys

from securebench.sandboxes._bubblewrap import joiner as _joiner
from securebench.sandboxes._guarded import keeper as _keeper
from securebench.sandboxes._launch import become as _become
from securebench.sandboxes._launch import wire as _wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_SERVERS: dict[bytes, Callable[[_socket.socket], int]] = {b"L": _joiner.serve, b"K": _keeper.serve}


def main() -> int:
    """Fork for every request that arrives on descriptor 0, until that closes."""
    _become.reset_signals((_signal.SIGPIPE,))  # an engine that is gone must not end us by a signal
    _signal.signal(_signal.SIGCHLD, lambda *_: _reap())
    requests = _socket.socket(fileno=0)
    ours = os.getpid()
    while (message := _wire.receive(requests)) is not None:
        kind, fds = message
        _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGCHLD,))  # nobody is reaped before it can be held
        pid = os.fork()
        if pid == 0:
            if kind == b"S":
                _start(fds, ours)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, requests.detach())
            os.close(null)
            return _SERVERS[kind](_socket.socket(fileno=fds[0]))
        for fd in fds:
            os.close(fd)
        if kind == b"S":
            pidfd = os.pidfd_open(pid)
            _wire.send(requests, b"pid %d" % pid, [pidfd])
            os.close(pidfd)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGCHLD,))
    return 0


def _reap() -> None:
    """Whoever has ended; the engine, which watches them, has learned it already."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _start(fds: list[int], parent: int) -> None:
    """In the new process: become a program of ours. Never returns; a failure is told on its standard error."""
    stderr = fds[3]
    argv: list[bytes] = [b"a program"]
    try:
        uid, ignored, limits, numbers, count, *words = _wire.read_payload(fds[0])
        argv, env = words[: int(count)], words[int(count) :]
        places = [int(number) for number in numbers.split()]
        given, entrances = fds[1 : 1 + len(places)], fds[1 + len(places) :]
        os.setsid()
        stderr = _become.place(given, places, stderr)
        os.chdir("/")
        _become.limit(limits)
        if int(uid) >= 0:
            _become.become_user(int(uid))
        _become.prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it ended before we could ask to be told
        _become.reset_signals(tuple(int(number) for number in ignored.split()))
        _become.enter_groups(entrances)  # last, so that little of this interpreter is counted there
        _become.execute(argv, _become.variables(env))
    except OSError as error:
        os.write(stderr, b"cannot start %s: %s\n" % (argv[0], os.strerror(error.errno or 0).encode()))
    finally:
        os._exit(127)


if __name__ == "__main__":
    sys.exit(main())
