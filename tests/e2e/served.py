"""A real server process and what clients need to talk with it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests.e2e.workbench import CLI, question

TOKEN = "a-token-of-the-tests-0123456789"

CODE = {
    "id": "sq",
    "family": "code_completion",
    "input": {"prompt": "def sq(x):\n", "language": "python", "entry_point": "sq"},
    "eval": {"tests": {"source": "inline", "code": "def check(f):\n    assert f(3) == 9\n    assert f(-2) == 4\n"}},
}
PATCH = {
    "id": "fix",
    "family": "repo_patch",
    "input": {"repo": ".", "base_commit": "0" * 40, "instructions": "fix it"},
    "eval": {"tests": {"source": "command", "command": ["true"]}},
}
RIGHT, WRONG = "def sq(x):\n    return x * x\n", "def sq(x):\n    return 9\n"


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[str]
    url: str
    errors: Path

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def client(self, token: str | None = TOKEN, **how: Any) -> httpx2.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        limits = httpx2.Limits(max_connections=200)
        return httpx2.Client(
            base_url=self.url, headers=headers, timeout=600, trust_env=False, **{"limits": limits, **how}
        )

    def grade(self, task: str, candidate: Any) -> httpx2.Response:
        with self.client() as client:
            return client.post("/v1/grade", json={"task": task, "candidate": candidate})

    def raw(self, data: bytes, seconds: float = 15.0) -> bytes:
        """What comes back for these bytes, until the server closes or says nothing more."""
        with socket.create_connection(self.address, timeout=seconds) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return everything(connection)

    def metrics(self) -> Mapping[str, float]:
        with self.client() as client:
            lines = client.get("/metrics").text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(120)

    def said(self) -> str:
        return self.errors.read_text()


def everything(connection: socket.socket) -> bytes:
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except (TimeoutError, ConnectionError):
        pass
    return data


def make_pack(directory: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "manifest.yaml").write_text("id: served\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


@contextmanager
def served(
    directory: Path, *args: str, rows: Sequence[Mapping[str, Any]] = (), token: str | None = TOKEN
) -> Iterator[Served]:
    """`securebench serve` on a free port, ready; killed at the end where it still runs."""
    pack, errors = make_pack(directory / "pack", rows or [question(1), CODE]), directory / "stderr"
    env = {**os.environ, **({} if token is None else {"SECUREBENCH_TOKEN": token})}
    with errors.open("w") as stderr:
        argv = [*CLI, "serve", str(pack), "--port", "0", "--json", *args]
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=stderr, text=True, env=env, start_new_session=True
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, errors.read_text()
            yield Served(process, json.loads(line)["url"], errors)
        finally:
            process.kill()


def lines(response: httpx2.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]
