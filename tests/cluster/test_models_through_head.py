"""Agents on a node ask models through the broker of the head: its keys stay there, its budgets hold, and what one
agent does to its connections is nobody else's trouble."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from tests.cluster.model_world import World, world
from tests.upstreams import KEY, OK, SSE_HEAD, Asked, Send, chunk, event, fine, reply

from securebench._tasks import side_tasks
from securebench.cluster import streams
from securebench.errors import FailureReason, InfrastructureError
from securebench.harnesses import sandboxed
from securebench.harnesses.base import Production

LARGE = 12 * 2**20


def within(seconds: float, main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(seconds):
            await main()

    anyio.run(bounded)


def text_of(production: Production) -> str:
    assert production.candidate is not None, production
    assert production.candidate.text is not None
    return production.candidate.text


def test_an_agent_on_a_node_is_answered_and_its_requests_are_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path, "print(ask()[1], os.environ['GREETING'])") as w:
            production = await w.produce()
            assert text_of(production) == "4 hello\n"
            assert production.failure is production.fault is None
            assert production.usage["requests"] == 1
            assert production.usage["output_tokens"] == 5
            assert production.metadata["reachable"] == ["broker"]
            (exchange,) = json.loads(production.evidence["egress.json"])["exchanges"]
            assert exchange["status"] == 200
            assert exchange["usage"]["output_tokens"] == 5
            assert b"gpt-5" in production.evidence["trajectory.json"]

    within(120, main)


def memory_of(pid: int) -> bytes:
    """What a process can have kept: everything it may write to."""
    found = bytearray()
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in maps:
            where = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if where is not None:
                start, end = int(where[1], 16), int(where[2], 16)
                try:
                    memory.seek(start)
                    found += memory.read(end - start)
                except (OSError, OverflowError, ValueError):
                    continue
    return bytes(found)


def test_the_key_is_in_no_frame_to_the_node_and_nowhere_in_its_process(tmp_path: Path) -> None:
    looked: dict[str, bytes] = {}

    async def main() -> None:
        async def while_asked(asked: Asked, send: Send) -> None:
            assert w.process is not None
            looked["memory"] = memory_of(w.process.pid)
            looked["environment"] = Path(f"/proc/{w.process.pid}/environ").read_bytes()
            await fine(asked, send)

        async with world(tmp_path, "print(ask()[1])", while_asked) as w:
            await w.produce()
            (asked,) = w.simulator.asked
            assert asked.headers["authorization"] == f"Bearer {KEY}", "the provider was asked with the real key"
            looked["frames"] = bytes(w.link.sent)

    within(120, main)
    for where in ("frames", "memory"):
        assert b"sk-securebench-" in looked[where], "the search works: it finds the placeholder"
    assert b"PYTHONPATH" in looked["environment"]
    for where, data in looked.items():
        assert KEY.encode() not in data, where


SPENDER = """
import time
print(ask()[0], ask()[0], flush=True)
time.sleep(300)
"""


def test_a_budget_ends_an_agent_on_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxed, "BUDGET_GRACE", 0.2)

    async def main() -> None:
        budget = {"attempt": {"requests": 1}}
        async with world(tmp_path, SPENDER, own_process=False, budget=budget) as w:
            production = await w.produce()
            assert production.failure is not None
            assert production.failure.reason is FailureReason.BUDGET_EXHAUSTED
            assert "attempt.requests" in str(production.failure)
            assert text_of(production) == "200 403\n", "what it had said by then is kept"
            assert production.usage["requests"] == len(w.simulator.asked) == 1

    within(120, main)


def test_a_budget_of_seconds_ends_an_agent_that_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxed, "BUDGET_GRACE", 0.2)

    async def main() -> None:
        budget = {"attempt": {"seconds": 1}}
        async with world(tmp_path, "import time; time.sleep(300)", own_process=False, budget=budget) as w:
            production = await w.produce()
            assert production.failure is not None
            assert production.failure.reason is FailureReason.BUDGET_EXHAUSTED

    within(120, main)


def test_a_budget_of_the_run_that_is_used_up_starts_no_agent(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path, "print(ask()[0])", budget={"requests": 1}) as w:
            assert (await w.produce("first")).failure is None
            second = await w.produce("second")
            assert second.failure is not None
            assert second.failure.reason is FailureReason.BUDGET_EXHAUSTED
            assert second.candidate is None
            assert len(w.simulator.asked) == 1

    within(120, main)


def test_providers_that_answer_nobody_are_the_fault_of_nobody_s_agent(tmp_path: Path) -> None:
    async def denied(asked: Asked, send: Send) -> None:
        await send(reply({"error": "no such key"}, 401))

    async def main() -> None:
        async with world(tmp_path, "print(ask()[0])", denied) as w:
            assert "no model answered" in ((await w.produce()).fault or "")

    within(120, main)


async def large(asked: Asked, send: Send) -> None:
    await send(SSE_HEAD)
    for _ in range(LARGE // 2**16):
        await send(chunk(event("x" * 2**16)))
    await send(chunk(event({"usage": OK["usage"]})) + chunk(b""))


# Reads the large reply whole, or never reads it, as the task says.
READER = """
import hashlib, http.client, socket, time
what = json.load(open("task.json"))["task_id"]
here = http.client.HTTPConnection("127.0.0.1", 18461, timeout=60)
body = json.dumps({"model": "gpt-5", "stream": True, "messages": [{"role": "user", "content": "2+2"}]})
head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
here.request("POST", "/openai/v1/chat/completions", body, head)
if what == "stall":
    time.sleep(5)
    print("stalled")
else:
    print(len(here.getresponse().read()))
"""


def test_a_large_reply_comes_whole(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path, READER, large) as w:
            assert int(text_of(await w.produce("read"))) > LARGE

    within(120, main)


@pytest.mark.parametrize("window", [None, 2**30])
def test_an_agent_that_reads_nothing_is_sent_no_more_than_a_window(
    window: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With windows that are never full, all of it goes to the node, to wait there."""
    if window is not None:
        monkeypatch.setattr(streams, "WINDOW", window)

    async def main() -> None:
        async with world(tmp_path, READER, large, own_process=False) as w:
            assert text_of(await w.produce("stall")) == "stalled\n"
            # What the sockets of the agent took was taken, and made room for as much again.
            assert (len(w.link.sent) < LARGE - 2**20) is (window is None), len(w.link.sent)

    within(120, main)


HOSTILE = """
import socket, threading, time
what = json.load(open("task.json"))["task_id"]
if what == "hostile":
    held = []
    def flood():
        for n in range(150):
            s = socket.create_connection(("127.0.0.1", 18461))
            held.append(s)
            s.setblocking(False)
            try:
                while True:
                    s.send(b"POST /openai/v1/chat/completions HTTP/1.1\\r\\ncontent-length: 99999999\\r\\n\\r\\n" * 1000)
            except OSError:
                pass
    threading.Thread(target=flood, daemon=True).start()
    time.sleep(1)
    print("flooding", flush=True)
    time.sleep(300)
else:
    print(*(ask()[0] for _ in range(20)))
"""


def test_an_agent_that_floods_and_stalls_holds_up_no_other_attempt(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path, HOSTILE) as w, side_tasks() as tasks:
            tasks.start_soon(w.produce, "hostile")
            while b"flooding" not in w.printed("hostile"):
                await anyio.sleep(0.05)
            with anyio.fail_after(100):
                assert text_of(await w.produce("honest")).split() == ["200"] * 20
            tasks.cancel_scope.cancel()

    within(120, main)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _begun(w: World) -> None:
    while not w.simulator.asked:
        await anyio.sleep(0.02)


@pytest.mark.parametrize("end", ["the node is lost", "the attempt is cancelled"])
def test_what_an_attempt_had_open_on_the_head_is_over_with_it(end: str, tmp_path: Path) -> None:
    async def never(asked: Asked, send: Send) -> None:
        await send(SSE_HEAD)
        while True:
            await send(chunk(event("more")))
            await anyio.sleep(0.02)

    async def main() -> None:
        async with world(tmp_path, READER, never) as w:
            before, tasks_before = descriptors(), len(asyncio.all_tasks())
            assert w.process is not None
            if end == "the node is lost":
                async with side_tasks() as tasks:
                    tasks.start_soon(_lose, w)
                    with pytest.raises(InfrastructureError, match="n1 was lost"):
                        await w.produce("read")
            else:
                async with side_tasks() as tasks:
                    tasks.start_soon(w.produce, "read")
                    await _begun(w)
                    assert descriptors() > before
                    tasks.cancel_scope.cancel()
            with anyio.fail_after(100):
                while descriptors() > before or len(asyncio.all_tasks()) > tasks_before or not w.simulator.hung_up:
                    await anyio.sleep(0.05)

    within(120, main)


async def _lose(w: World) -> None:
    await _begun(w)
    assert w.process is not None
    os.kill(w.process.pid, signal.SIGKILL)


HALF = """
import socket
s = socket.create_connection(("127.0.0.1", 18461))
s.sendall(b"GET /nobody HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n")
s.shutdown(socket.SHUT_WR)
data = b""
while part := s.recv(65536):
    data += part
print(data.split()[1].decode())
"""


def test_an_agent_that_says_it_has_no_more_to_say_is_still_answered(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path, HALF) as w:
            assert text_of(await w.produce()) == "404\n"

    within(120, main)
