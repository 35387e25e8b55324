"""Channels 0 and 1: a command's standard input and output are the caller's sockets."""

from __future__ import annotations

import gc
import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from tests.conformance.sandbox.box import PYTHON, Box, processes_with

from securebench.errors import ConfigError
from securebench.sandboxes.base import MIB, Limits, Outcome, SandboxResult, Scratch

SPECS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["fresh", "session"])
BIG = bytes(range(251)) * (8 * MIB // 251)


class Talk:
    """A command running in a thread, with the other end of its channels in our hands."""

    def __init__(self, ours: socket.socket, thread: threading.Thread, answers: list[Any]) -> None:
        self.ours, self._thread, self._answers = ours, thread, answers

    def rest(self) -> bytes:
        """All that still comes, until the command is gone."""
        return b"".join(iter(lambda: self.ours.recv(65536), b""))

    def result(self) -> SandboxResult:
        self._thread.join(60)
        assert self._answers, "the command did not end"
        (answer,) = self._answers
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, SandboxResult)
        return answer


@contextmanager
def _talk(box: Box, *argv: str, numbers: tuple[int, ...] = (0, 1), **how: Any) -> Iterator[Talk]:
    """One socket under these numbers."""
    ours, theirs = socket.socketpair()
    answers: list[Any] = []

    def run() -> None:
        command: Mapping[str, Any] = {"channels": dict.fromkeys(numbers, theirs), **how.pop("command", {})}
        try:
            answers.append(box.run(*argv, command=dict(command), **how))
        except BaseException as error:  # noqa: BLE001  (shown by `result`)
            answers.append(error)

    thread = threading.Thread(target=run)
    ours.settimeout(60)
    thread.start()
    try:
        with ours, theirs:
            yield Talk(ours, thread, answers)
    finally:
        thread.join(60)


@SPECS
def test_bytes_go_both_ways_and_nothing_is_captured(box: Box, mounts: tuple[Scratch, ...]) -> None:
    data = bytes(range(256)) + b"\n"
    with _talk(box, "/bin/sh", "-c", "echo err >&2; exec cat", mounts=mounts) as talk:
        for _ in range(3):
            talk.ours.sendall(data)
            assert talk.ours.recv(len(data), socket.MSG_WAITALL) == data
        talk.ours.shutdown(socket.SHUT_WR)
        assert talk.rest() == b""
        result = talk.result()
    assert result.ok
    assert (result.stdout.data, result.stdout.total, result.stderr.data) == (b"", 0, b"err\n")


@SPECS
def test_much_goes_both_ways_at_once(box: Box, mounts: tuple[Scratch, ...]) -> None:
    with _talk(box, "/bin/cat", mounts=mounts, limits=Limits(wall_seconds=50)) as talk:

        def send() -> None:
            talk.ours.sendall(BIG)
            talk.ours.shutdown(socket.SHUT_WR)  # the end of the input, while the output goes on

        sender = threading.Thread(target=send)
        sender.start()
        back = talk.rest()
        sender.join(60)
        assert talk.result().ok
    assert hashlib.sha256(back).digest() == hashlib.sha256(BIG).digest()


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_end_of_the_command_ends_the_stream(box: Box, end: str) -> None:
    with _talk(box, "/bin/sh", "-c", f"read line; echo last words; {end}") as talk:
        talk.ours.sendall(b"go\n")
        assert talk.rest() == b"last words\n"
        result = talk.result()
    assert (result.exit_code, result.signal) in ((3, None), (None, 9))


def test_two_sockets_for_input_and_output(box: Box) -> None:
    into, theirs_in = socket.socketpair()
    out, theirs_out = socket.socketpair()
    with into, theirs_in, out, theirs_out:
        out.settimeout(60)
        into.sendall(b"two sockets")
        into.shutdown(socket.SHUT_WR)
        assert box.run("/bin/cat", command={"channels": {0: theirs_in, 1: theirs_out}}).ok
        assert out.recv(100) == b"two sockets"
        assert out.recv(100) == b""
        assert into.recv(100) == b""
        assert theirs_in.fileno() == theirs_out.fileno() == -1  # taken over


def test_only_the_output_is_a_channel(box: Box) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(60)
        assert box.run("/bin/cat", command={"channels": {1: theirs}, "stdin": b"given"}).ok
        assert (ours.recv(100), ours.recv(100)) == (b"given", b"")


def test_only_the_input_is_a_channel(box: Box) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"sent")
        ours.shutdown(socket.SHUT_WR)
        assert box.run("/bin/cat", command={"channels": {0: theirs}}).stdout.data == b"sent"


def test_input_is_either_a_channel_or_bytes(box: Box) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ConfigError, match="channel 0"):
        box.run("/bin/cat", command={"channels": {0: theirs}, "stdin": b"bytes"})


@SPECS
@pytest.mark.parametrize("script", ["exec sleep 60", "exec yes", "exec cat"], ids=["silent", "unread", "waiting"])
def test_timeout_ends_it_whatever_the_caller_does(box: Box, mounts: tuple[Scratch, ...], script: str) -> None:
    """The caller neither reads nor sends."""
    with _talk(box, "/bin/sh", "-c", script, mounts=mounts, limits=Limits(wall_seconds=1)) as talk:
        assert talk.result().outcome is Outcome.TIMEOUT
        talk.rest()  # it has an end


def test_caller_that_hangs_up_ends_the_input(box: Box) -> None:
    marker = f"71.{time.time_ns()}"
    program = f"import sys; sys.stderr.write(repr(sys.stdin.buffer.read())); '{marker}'"
    with _talk(box, PYTHON, "-c", program) as talk:
        talk.ours.sendall(b"half a")
        talk.ours.close()
        result = talk.result()
    assert result.stderr.data == b"b'half a'"
    assert processes_with(marker) == []


def test_caller_that_hangs_up_ends_a_program_that_goes_on_writing(box: Box) -> None:
    with _talk(box, "/usr/bin/yes", limits=Limits(wall_seconds=50)) as talk:
        assert talk.ours.recv(2, socket.MSG_WAITALL) == b"y\n"
        talk.ours.close()
        result = talk.result()
    # By the signal, or by itself where whoever started us had the signal ignored.
    assert result.outcome in (Outcome.SIGNALLED, Outcome.EXITED)
    assert not result.ok


def test_refused_command_gives_its_channels_up(box: Box) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(60)
        with pytest.raises(ConfigError):
            box.run("", command={"channels": {0: theirs, 1: theirs}})
        theirs.close()
        assert ours.recv(1) == b""  # nothing of the sandbox holds it


def test_no_descriptor_of_ours_remains(box: Box) -> None:
    box.run("/bin/true")
    gc.collect()  # what earlier tests left in cycles is closed now, and not between the two
    before = len(os.listdir("/proc/self/fd"))
    with _talk(box, "/bin/cat") as talk:
        talk.ours.close()
        talk.result()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
