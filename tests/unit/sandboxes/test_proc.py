from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from securebench._proc import Capture, Pipe, feed, run_tool, run_tool_sync, start
from securebench.errors import InfrastructureError


def test_tool_gets_input_and_gives_output() -> None:
    async def main() -> None:
        done = await run_tool(["cat"], 60, stdin=b"x" * 3_000_000)
        assert (done.status, len(done.stdout), done.ok) == (0, 3_000_000, True)

    anyio.run(main)


def test_tool_reports_status_and_signal() -> None:
    assert anyio.run(run_tool, ["sh", "-c", "echo no >&2; exit 3"], 60).status == 3
    assert anyio.run(run_tool, ["sh", "-c", "kill -9 $$"], 60).status == -9


def test_tool_that_takes_too_long_is_killed() -> None:
    began = time.monotonic()
    assert anyio.run(run_tool, ["sleep", "300"], 0.1).status is None
    assert run_tool_sync(["sleep", "300"], 0.1).status is None
    assert time.monotonic() - began < 100


def test_tool_that_is_missing_is_an_infrastructure_error() -> None:
    with pytest.raises(InfrastructureError, match="no-such-tool"):
        anyio.run(run_tool, ["no-such-tool"], 10)
    with pytest.raises(InfrastructureError, match="no-such-tool"):
        run_tool_sync(["no-such-tool"], 10)


def test_only_named_descriptors_are_inherited() -> None:
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)

    async def main() -> bytes:
        pipe = Pipe.for_reading()
        argv = [sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/fd')))"]
        process = start(argv, env={}, stdout=pipe.write)
        pipe.close_write()
        capture = Capture(100, 100)
        await capture.drain(pipe.read)
        await process.wait()
        await process.close()
        pipe.close()
        return bytes(capture.data)

    assert anyio.run(main) == b"4\n"  # three streams and the listing
    os.close(leaked)


def test_capture_keeps_the_first_bytes_counts_all_and_reports_a_flood_once() -> None:
    floods: list[int] = []
    seen = bytearray()

    async def main() -> Capture:
        pipe = Pipe.for_reading()
        os.set_blocking(pipe.write, False)
        capture = Capture(10, 20, seen.extend, lambda: floods.append(capture.total))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(capture.drain, pipe.read)
            await feed(pipe.write, b"0123456789abcdef")
            await anyio.sleep(0.02)
            assert floods == []
            await feed(pipe.write, b"ghijk")
            await feed(pipe.write, b"l" * 100_000)
            pipe.close_write()
        pipe.close()
        return capture

    capture = anyio.run(main)
    assert (bytes(capture.data), bytes(seen), capture.total, len(floods)) == (b"0123456789", b"0123456789", 100_021, 1)


def test_feeding_a_reader_that_left_is_not_an_error() -> None:
    async def main() -> None:
        pipe = Pipe.for_writing()
        pipe.close_read()
        await feed(pipe.write, b"x" * 1_000_000)
        pipe.close()

    anyio.run(main)


def test_cancelled_tool_is_killed_and_reaped() -> None:
    seen: list[int] = []

    def ours() -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if b"57.31" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        return found

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_tool, ["sleep", "57.31"], 60)
            while not seen:
                await anyio.sleep(0.01)
                seen.extend(ours())
            tasks.cancel_scope.cancel()

    anyio.run(main)
    with pytest.raises(ChildProcessError):
        os.waitpid(seen[0], os.WNOHANG)
    assert ours() == []
