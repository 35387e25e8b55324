"""Bytes in, bytes out, none lost, none in the wrong place."""

from __future__ import annotations

import hashlib
import json
import socket

import anyio
import pytest
from tests.conformance.sandbox.box import PYTHON, Box, text

from securebench.errors import ConfigError
from securebench.sandboxes.base import MIB, Command, Limits, SandboxResult, SandboxSpec, Scratch, run_once

SPECS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["fresh", "session"])
BIG = Limits(wall_seconds=60, output=16 * MIB)


@SPECS
def test_big_input_and_output_do_not_deadlock(box: Box, mounts: tuple[Scratch, ...]) -> None:
    data = bytes(range(256)) * 40960  # 10 MiB
    result = box.run("/bin/cat", limits=BIG, mounts=mounts, command={"stdin": data})
    assert result.ok
    assert hashlib.sha256(result.stdout.data).digest() == hashlib.sha256(data).digest()
    assert result.stdout.total == len(data)


@SPECS
def test_input_that_is_never_read_is_no_problem(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert box.run("/bin/true", mounts=mounts, command={"stdin": bytes(10 * MIB)}).ok


@SPECS
@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 300_000])
def test_input_arrives_whole_and_ends(box: Box, size: int, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh("wc -c", mounts=mounts, command={"stdin": b"x" * size})
    assert int(text(result)) == size


@SPECS
def test_bytes_are_counted_exactly_beyond_what_is_kept(box: Box, mounts: tuple[Scratch, ...]) -> None:
    limits = Limits(wall_seconds=60, output=1000)
    result = box.sh("head -c 1999 /dev/zero; head -c 1234 /dev/zero >&2", limits=limits, mounts=mounts)
    assert result.ok
    assert (len(result.stdout.data), result.stdout.total, result.stdout.truncated) == (1000, 1999, True)
    assert (len(result.stderr.data), result.stderr.total, result.stderr.truncated) == (1000, 1234, True)


@SPECS
def test_streams_stay_apart_and_bytes_stay_bytes(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh("printf '\\377\\000\\200out'; printf 'err\\376' >&2", mounts=mounts)
    assert (result.stdout.data, result.stderr.data) == (b"\xff\x00\x80out", b"err\xfe")


def test_output_written_just_before_the_end_is_not_lost(box: Box) -> None:
    for _ in range(5):
        assert box.sh("head -c 60000 /dev/zero; kill -9 $$").stdout.total == 60000


@SPECS
def test_output_is_streamed_within_the_limit(box: Box, mounts: tuple[Scratch, ...]) -> None:
    limits = Limits(wall_seconds=60, output=5)
    for pause in (0.1, 1, 10):  # a busy machine may let us look only after the second piece
        seen: list[tuple[str, bytes]] = []
        result = box.sh(
            f"printf abc; sleep {pause}; printf defgh; printf E >&2",
            limits=limits,
            mounts=mounts,
            command={"on_output": lambda name, data, to=seen: to.append((name, data))},
        )
        assert result.ok
        assert b"".join(data for name, data in seen if name == "stdout") == b"abcde"
        assert ("stderr", b"E") in seen
        if ("stdout", b"abc") in seen:
            break
    assert ("stdout", b"abc") in seen


@SPECS
def test_no_input_is_an_empty_input(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert text(box.sh("cat; echo end", mounts=mounts)) == "end"


@SPECS
def test_channels_arrive_under_their_numbers(box: Box, mounts: tuple[Scratch, ...]) -> None:
    first, first_inside = socket.socketpair()
    second, second_inside = socket.socketpair()
    program = (
        "import os\n"
        "for n in (3, 9): os.write(n, b'got ' + os.read(n, 100))\n"
        "print([n for n in range(300) if os.path.exists(f'/proc/self/fd/{n}')])"
    )

    async def main() -> SandboxResult:
        spec = SandboxSpec(mounts=mounts, limits=Limits(wall_seconds=60))
        command = Command((PYTHON, "-c", program), channels={9: first_inside, 3: second_inside})
        return await run_once(box.sandbox, spec, command)

    with first, second, first_inside, second_inside:
        first.send(b"nine")
        second.send(b"three")
        assert text(anyio.run(main)) == "[0, 1, 2, 3, 9]"
        assert (first.recv(100), second.recv(100)) == (b"got nine", b"got three")
        first_inside.close()
        first.settimeout(60)
        assert first.recv(100) == b""  # nothing of the sandbox holds it any more


def test_channel_may_not_be_the_standard_error(box: Box) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ConfigError):
        box.run("/bin/true", command={"channels": {2: theirs}})


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",)])
def test_impossible_command_is_refused(box: Box, argv: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        box.run(*argv)


@SPECS
def test_words_arrive_as_given(box: Box, mounts: tuple[Scratch, ...]) -> None:
    words = ("--", "-x", "", "a b", "ü\n", "$HOME", "'\"")
    program = "import sys, json; print(json.dumps(sys.argv[1:]))"
    assert json.loads(text(box.run(PYTHON, "-c", program, *words, mounts=mounts))) == list(words)
