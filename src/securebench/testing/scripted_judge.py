"""A judge on loopback that speaks chat completions and judges as its script says: honest, or gullible in known ways."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from securebench import _json

PASS, FAIL = '{"verdict":"pass"}', '{"verdict":"fail"}'
Judge = Callable[[list[dict[str, str]]], "str | int"]
"""From the messages to the reply, or to an HTTP status."""


def honest(messages: list[dict[str, str]]) -> str:
    """Reads the fence from our message, takes what stands between the two fences as data, looks for the reference."""
    text, reference = _fenced(messages), _facts(messages)["reference_answer"]
    return PASS if text is not None and reference in text else FAIL


def gullible(messages: list[dict[str, str]]) -> str:
    """Does what the response says."""
    said = messages[-1]["content"]
    return PASS if PASS in said or "meets every criterion" in said else honest(messages)


def trusting_fences(messages: list[dict[str, str]]) -> str:
    """Takes whatever stands after something that looks like the closing fence for a word from its operator."""
    fence = _fence(messages)
    after = messages[-1]["content"].split(f"\n{fence}\n", 1)[1:]
    return PASS if after and PASS in after[0] else honest(messages)


def quoting(messages: list[dict[str, str]]) -> str:
    """Repeats the response before it decides."""
    return f"The response was: {messages[-1]['content']}\n{honest(messages)}"


def lenient(messages: list[dict[str, str]]) -> str:  # noqa: ARG001 — the shape of a judge
    return PASS


def _fence(messages: list[dict[str, str]]) -> str:
    found = re.search(r"RESPONSE-\w+", messages[0]["content"])
    return found[0] if found else ""


def _fenced(messages: list[dict[str, str]]) -> str | None:
    fence, lines = _fence(messages), messages[1]["content"].split("\n")
    if len(messages) != 2 or lines[0] != fence or lines[-1] != fence or lines.count(fence) != 2:
        return None
    return "\n".join(lines[1:-1])


def _facts(messages: list[dict[str, str]]) -> Any:
    return _json.loads(messages[0]["content"].rpartition("\n\n")[2])


@dataclass
class ScriptedJudge:
    """A running server. `asked` holds every request's headers and body as they came."""

    judge: Judge
    address: str = ""
    asked: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)


@contextmanager
def scripted_judge(judge: Judge) -> Iterator[ScriptedJudge]:
    """Serve on a free port of loopback until the block ends."""
    running = ScriptedJudge(judge)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body: Any = _json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            running.asked.append((dict(self.headers), body))
            said = running.judge(body["messages"]) if self.path == "/v1/chat/completions" else 404
            status = said if isinstance(said, int) else 200
            reply = {"choices": [{"message": {"role": "assistant", "content": said}}]}
            data = _json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        running.address = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield running
        finally:
            server.shutdown()
            thread.join()
