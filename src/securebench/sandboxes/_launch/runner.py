"""One session's process outside the sandbox: starts one command at a time and sees its true end.

Messages, with the payload in a memory file that comes as first descriptor: `J` prepare the session (answered with
`ok`), `R` make a command's process (answered with `pid N`), `G` it may go on, `K` end everything the session started
(no answer). When a command ends: `end STATUS ERRNO STAGE CPU_US MAX_RSS_KB`. Our own failure: `error TEXT`. When the
control socket closes, everything is ended. What differs between backends is in the subclasses.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import os
import select
import struct
import sys

from securebench.sandboxes._launch import become as _become
from securebench.sandboxes._launch import wire as _wire

STAGES = ("start", "enter its working directory", "run")
FAULT = struct.Struct("<ii")

_PR_SET_PDEATHSIG = 1


class Runner:
    """The state of one session on this side."""

    def __init__(self, control: _socket.socket) -> None:
        self.control = control

    def prepare(self, items: list[bytes], fds: list[int]) -> list[int]:
        """Answer `J`; descriptors to send back, which are closed afterwards."""
        raise NotImplementedError

    def walls(self) -> None:
        """In a command's process: the last thing before it becomes the command."""
        raise NotImplementedError

    def sweep(self) -> None:
        """End everything the session's commands started."""
        raise NotImplementedError

    def end_all(self) -> None:
        """End the session for good."""
        raise NotImplementedError

    def reap(self, pid: int) -> tuple[int, float, int]:
        """The status, processor time and peak memory of a command that has ended."""
        _, status, usage = os.wait4(pid, 0)
        return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss

    def serve(self) -> None:
        """Answer messages until the engine goes away."""
        while (message := self._receive()) is not None:
            kind, items, fds = message
            if kind == b"J":
                made = self.prepare(items, fds)
                _wire.send(self.control, b"ok", made)
                for fd in made:
                    os.close(fd)
            elif kind == b"R":
                self._run(items, fds)
            elif kind == b"K":
                self.sweep()

    def _receive(self) -> tuple[bytes, list[bytes], list[int]] | None:
        message = _wire.receive(self.control)
        if message is None:
            return None
        kind, fds = message
        return (kind, _wire.read_payload(fds[0]), fds[1:]) if fds else (kind, [], [])

    def _run(self, items: list[bytes], fds: list[int]) -> None:
        gate_read, gate_write = os.pipe()
        fault_read, fault_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(gate_write)
            self._become(items, fds, gate_read, fault_write)
        pidfd = os.pidfd_open(pid)
        os.close(gate_read)
        os.close(fault_write)
        for fd in fds:
            os.close(fd)
        _wire.send(self.control, b"pid %d" % pid)
        self._until_end(pidfd, gate_write)
        status, cpu, peak = self.reap(pid)
        fault = os.read(fault_read, FAULT.size)
        os.close(fault_read)
        os.close(pidfd)
        stage, number = FAULT.unpack(fault) if len(fault) == FAULT.size else (0, 0)
        _wire.send(self.control, b"end %d %d %d %d %d" % (status, number, stage, int(cpu * 1_000_000), peak))

    def _until_end(self, pidfd: int, gate: int) -> None:
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        poller.register(self.control.fileno(), select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if self.control.fileno() in ready:
                message = self._receive()
                if message is None:
                    raise EOFError
                if message[0] == b"G":
                    os.write(gate, b"g")
                    os.close(gate)
                    gate = -1
                elif message[0] == b"K":
                    self.sweep()
            elif pidfd in ready:
                if gate >= 0:
                    os.close(gate)
                return

    def _become(self, items: list[bytes], fds: list[int], gate: int, fault: int) -> None:
        """In the new process: wait for the word, give everything up, become the command. Never returns."""
        stage = 0
        try:
            _become.prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL)
            if os.read(gate, 1) != b"g":
                os._exit(1)
            cwd, count, limits, numbers, *words = items
            argv, env = words[: int(count)], words[int(count) :]
            places = [0, 1, 2, *map(int, numbers.split())]
            os.setsid()
            fault = _become.place(fds[: len(places)], places, fault)
            stage = 1
            os.chdir(cwd)
            stage = 0
            _become.limit(limits)
            _become.reset_signals()
            _become.enter_groups(fds[len(places) :])
            self.walls()
            stage = 2
            _become.execute(argv, _become.variables(env))
        except OSError as error:
            os.write(fault, FAULT.pack(stage, error.errno or 0))
        finally:
            os._exit(127)


def serve(runner: Runner) -> int:
    """Serve one session; any failure of ours is told to the engine in words."""
    sys.excepthook = lambda _kind, error, _trace: _tell(runner.control, repr(error))
    try:
        _wire.send(runner.control, b"pid %d" % os.getpid())
        runner.serve()
    except EOFError:
        return 0
    except OSError as error:
        _tell(runner.control, str(error))
        return 1
    finally:
        runner.end_all()
    return 0


def _tell(control: _socket.socket, text: str) -> None:
    try:
        _wire.send(control, b"error " + text.encode("utf-8", "replace")[:400])
    except OSError:
        return  # the engine is gone, and with it whoever would read this
