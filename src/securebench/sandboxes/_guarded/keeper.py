"""Runs the commands of a guarded session and keeps hold of everything they start. Linux only.

It is the subreaper of its commands: whatever they leave behind, also after double forks and in sessions of their own,
becomes its child, so the whole tree can be found from here. No namespace, no filter, no other user: this holds the
careless and the broken, not the hostile, who may end the keeper itself. Runs in the spawner's process (`_launch`).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import os
import select

from securebench.sandboxes._launch import become as _become
from securebench.sandboxes._launch import runner as _runner

_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38


class Keeper(_runner.Runner):
    """One session of the guarded backend."""

    def __init__(self, control: _socket.socket) -> None:
        super().__init__(control)
        self._ended: dict[int, tuple[int, float, int]] = {}
        self._hold = False

    def prepare(self, items: list[bytes], fds: list[int]) -> list[int]:  # noqa: ARG002
        _become.check(_become.prctl(_PR_SET_CHILD_SUBREAPER, 1), "be the one to whom orphans are left")
        _become.check(_become.prctl(_PR_SET_NO_NEW_PRIVS, 1), "refuse new privileges")
        _signal.signal(_signal.SIGCHLD, lambda *_: self._reap_all())
        return []

    def walls(self) -> None:
        """There are none."""

    def reap(self, pid: int) -> tuple[int, float, int]:
        self._reap_all()
        ended = self._ended[pid]
        self._ended.clear()
        return ended

    def sweep(self) -> None:
        """End every process that descends from us, however it tried to get away.

        Parents are stopped before their children are listed and nobody is reaped meanwhile, so no number in the list
        can come to mean another process. A child that was just being made is found in the next turn, as ours."""
        while True:
            self._hold = True
            try:
                for pidfd in _freeze(os.getpid()):
                    _send(pidfd, _signal.SIGKILL)
                    os.close(pidfd)
            finally:
                self._hold = False
            if not self._reap_all():
                return
            select.poll().poll(1)  # they are dying; a millisecond

    def end_all(self) -> None:
        self.sweep()

    def _reap_all(self) -> bool:
        """Reap whoever has ended; whether there is anybody left."""
        try:
            while not self._hold:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                self._note(pid, status, usage)
        except ChildProcessError:
            return False
        return True

    def _note(self, pid: int, status: int, usage: object) -> None:
        cpu = usage.ru_utime + usage.ru_stime  # type: ignore[attr-defined]
        self._ended[pid] = (status, cpu, usage.ru_maxrss)  # type: ignore[attr-defined]


def _freeze(root: int) -> list[int]:
    """Stop everything beneath `root`, parents first; a pidfd on each that was still alive."""
    frozen: list[int] = []
    seen = {root}
    waiting = _children(root)
    while waiting:
        pid, parent = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            continue
        state, real_parent = _stat(pid)
        if real_parent not in (parent, root) or state in "ZX":
            os.close(pidfd)
        else:
            _send(pidfd, _signal.SIGSTOP)
            frozen.append(pidfd)
        waiting += _children(pid)
        if not waiting:
            waiting = [pair for pair in _children(root) if pair[0] not in seen]
    return frozen


def _send(pidfd: int, number: int) -> None:
    try:
        _signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return  # it has ended, or became somebody we may not touch


def _children(pid: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (no pathlib here)
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += [(int(word), pid) for word in file.read().split()]
    except OSError:
        pass
    return found


def _stat(pid: int) -> tuple[str, int]:
    """The state letter and the parent of a process; X when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except OSError:
        return "X", -1
    return state.decode(), int(parent)


def serve(control: _socket.socket) -> int:
    """Serve one session until its control socket closes."""
    _become.reset_signals((_signal.SIGPIPE,))
    return _runner.serve(Keeper(control))
