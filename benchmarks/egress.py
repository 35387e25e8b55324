"""What the credential broker costs: a small request and a long streamed reply, direct and through it, in the same run.

    .venv/bin/python benchmarks/egress.py [--rounds 400] [--mebibytes 64] [--chunk 4096] [--repeats 5] [--json]

The provider and the broker are processes of their own, as an agent sees them; the client is the same real HTTP client
both times. The streamed reply is made of server-sent events, one in each HTTP chunk.

The targets: at most 3 ms more for a small request, at least half of the direct throughput for a stream.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any

import anyio
import anyio.abc
import httpx2

from securebench.egress.broker import Broker, ModelAccess
from securebench.egress.providers import load_provider

ADDED_MS, SHARE = 3.0, 0.5
WARM_UP = 20
KEY = "sk-real-0123456789abcdefghijklmnop"
MODEL = "gpt-5"
SMALL = json.dumps({"choices": [{"message": {"content": "4"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}})


def provider(pipe: Connection, total: int, chunk: int) -> None:
    """A process that answers like a provider, as fast as it can."""
    text = b'data: {"choices":[{"delta":{"content":"' + b"x" * (chunk - 60) + b'"}}]}\n\n'
    frame = f"{len(text):x}\r\n".encode() + text + b"\r\n"
    block = frame * max(1, 65536 // len(frame))
    last = b'data: {"usage":{"prompt_tokens":9,"completion_tokens":9}}\n\n'
    end = f"{len(last):x}\r\n".encode() + last + b"\r\n0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: "
    small = head + b"application/json\r\ncontent-length: %d\r\n\r\n" % len(SMALL) + SMALL.encode()

    async def answer(stream: anyio.abc.ByteStream) -> None:
        try:
            while True:
                request = await stream.receive(65536)
                if b"\r\n\r\n{" not in request:
                    request += await stream.receive(65536)
                if b'"stream":true' not in request:
                    await stream.send(small)
                    continue
                await stream.send(head + b"text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                for _ in range(total // (len(text) * (len(block) // len(frame)))):
                    await stream.send(block)
                await stream.send(end)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass

    async def main() -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            pipe.send(listener.extra(anyio.abc.SocketAttribute.local_port))
            await listener.serve(answer)

    anyio.run(main)


def broker(pipe: Connection, port: int) -> None:
    """A process with a broker in front of the provider."""

    async def main() -> None:
        access = ModelAccess(load_provider("openai"), MODEL, f"http://127.0.0.1:{port}/v1", KEY)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            async with Broker([access]) as made, made.session("benchmark") as session:
                pipe.send((session.environment(listener.getsockname()[1])["OPENAI_BASE_URL"], session.placeholder))
                await session.serve(listener)

    anyio.run(main)


async def ask(client: httpx2.AsyncClient, url: str, key: str, *, stream: bool) -> int:
    """The bytes of one reply."""
    body = b'{"model":"%s","messages":[{"role":"user","content":"2+2"}],"stream":%s}'
    content = body % (MODEL.encode(), b"true" if stream else b"false")
    size = 0
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    async with client.stream("POST", f"{url}/chat/completions", content=content, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        async for data in response.aiter_raw():
            size += len(data)
    return size


async def measure(ways: dict[str, tuple[str, str]], rounds: int, repeats: int) -> dict[str, Any]:
    """Interleaved, so that a busy moment of the machine hits both alike."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        for turn in range(-WARM_UP, rounds):
            for name, (url, key) in ways.items():
                began = time.perf_counter()
                await ask(client, url, key, stream=False)
                if turn >= 0:
                    times[name].append((time.perf_counter() - began) * 1000)
        for turn in range(-1, repeats):
            for name, (url, key) in ways.items():
                began = time.perf_counter()
                size = await ask(client, url, key, stream=True)
                if turn >= 0:
                    rates[name].append(size / (time.perf_counter() - began) / 2**20)
    return {name: row(times[name], rates[name]) for name in ways}


def row(times: list[float], rates: list[float]) -> dict[str, float]:
    deciles = statistics.quantiles(times, n=10)
    return {
        "median_ms": round(statistics.median(times), 3),
        "p10_ms": round(deciles[0], 3),
        "p90_ms": round(deciles[-1], 3),
        "mib_per_second": round(statistics.median(rates), 1),
    }


def run(rounds: int, mebibytes: int, chunk: int, repeats: int) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    upstream = context.Process(target=provider, args=(theirs, mebibytes * 2**20, chunk), daemon=True)
    upstream.start()
    port = ours.recv()
    between = context.Process(target=broker, args=(theirs, port), daemon=True)
    between.start()
    try:
        ways = {"direct": (f"http://127.0.0.1:{port}/v1", KEY), "broker": ours.recv()}
        rows = anyio.run(measure, ways, rounds, repeats)
    finally:
        for process in (between, upstream):
            process.terminate()
            process.join()
    direct, through = rows["direct"], rows["broker"]
    return {
        "rows": rows,
        "added_ms": round(through["median_ms"] - direct["median_ms"], 3),
        "throughput_ratio": round(through["mib_per_second"] / direct["mib_per_second"], 2),
    }


def show(result: dict[str, Any]) -> None:
    print(f"{'':10}{'median':>10}{'p10':>10}{'p90':>10}{'stream':>16}")
    for name, values in result["rows"].items():
        shown = "".join(f"{values[key]:>7.2f} ms" for key in ("median_ms", "p10_ms", "p90_ms"))
        print(f"{name:10}{shown}{values['mib_per_second']:>10.0f} MiB/s")
    added, share = result["added_ms"], result["throughput_ratio"]
    print(f"\nthe broker adds {added:.2f} ms to a request; ", end="")
    print(f"target {ADDED_MS:.0f} ms: {'met' if added <= ADDED_MS else 'MISSED'}")
    print(f"a stream through it has {share:.2f} of the direct throughput; ", end="")
    print(f"target {SHARE}: {'met' if share >= SHARE else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--chunk", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = run(arguments.rounds, arguments.mebibytes, arguments.chunk, arguments.repeats)
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
