"""Runs the commands of a session inside a sandbox that bubblewrap built and holds.

It becomes the sandbox's user, enters the namespaces of the held process, makes the listeners, fills the scratch
directories, and then starts one command at a time. It stays outside the sandbox's PID namespace, so nothing inside can
see, signal or trace it, and it sees the true wait status of what it started. Runs in the spawner's process (`_launch`):
standard library only, and nothing of it is needed inside.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import os

from securebench.sandboxes._bubblewrap import seed_reader as _seed_reader
from securebench.sandboxes._launch import become as _become
from securebench.sandboxes._launch import listening as _listening
from securebench.sandboxes._launch import runner as _runner

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_ALL_NAMESPACES = 0x7E020000  # user, pid, net, ipc, uts, cgroup, mount
_NETWORK_NAMESPACE = 0x40000000
_REFUSED = 3


class Joiner(_runner.Runner):
    """One session of the bubblewrap backend."""

    def __init__(self, control: _socket.socket) -> None:
        super().__init__(control)
        self._init = -1
        self._filter = b""

    def prepare(self, items: list[bytes], fds: list[int]) -> list[int]:
        """Enter the sandbox, fill the scratch directories; a descriptor on each, then one for each listener."""
        uid, host_network, self._filter, ports, *targets = items
        self._init, seed = fds
        if int(uid) >= 0:
            _become.become_user(int(uid))
        # Not readable or traceable through /proc by what runs inside, between fork and exec either.
        _become.check(_become.prctl(_PR_SET_DUMPABLE, 0), "make the launcher private")
        _become.check(_become.prctl(_PR_SET_NO_NEW_PRIVS, 1), "refuse new privileges")
        namespaces = _ALL_NAMESPACES & ~_NETWORK_NAMESPACE if host_network == b"1" else _ALL_NAMESPACES
        _become.check(_become.libc.setns(self._init, namespaces), "join the sandbox's namespaces")
        os.umask(0o022)
        roots = [os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for target in targets]
        with open(seed, "rb", buffering=1 << 20) as stream:  # noqa: PTH123
            _seed_reader.unpack(stream.read, dict(zip(targets, roots, strict=True)))
        return roots + _listening.listen(map(int, ports.split()))

    def walls(self) -> None:
        _become.make([*_become.without_capabilities(), _become.filtered(self._filter)])

    def sweep(self) -> None:
        """Kill every process inside but the first. One call kills them all at once, so no fork can outrun it.

        That call reaches everything its caller can see, so it is made only by a process that has no parent where it
        is: one we put into a PID namespace from outside. Where that is not so, or a limit of the host leaves no room
        for such a process, the sandbox's first process is killed, and so all of them."""
        try:
            pid = os.fork()
        except OSError:
            self.end_all()
            return
        if pid == 0:
            _kill_all_here()
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == _REFUSED:
            self.end_all()

    def end_all(self) -> None:
        """Kill the sandbox's first process, and so everything inside."""
        if self._init >= 0:
            try:
                _signal.pidfd_send_signal(self._init, _signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return


def _kill_all_here() -> None:
    """In a process of its own: end all that this PID namespace has but its first process. Never returns."""
    status = 0
    try:
        if os.getppid() == 0:
            os.kill(-1, _signal.SIGKILL)
        else:
            status = _REFUSED  # this would be the host
    except OSError:
        pass  # there was nobody
    finally:
        os._exit(status)


def serve(control: _socket.socket) -> int:
    """Serve one session until its control socket closes."""
    _become.reset_signals((_signal.SIGPIPE,))
    return _runner.serve(Joiner(control))
