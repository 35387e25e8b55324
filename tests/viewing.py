"""The viewer as people start it: a process of its own, asked over real sockets."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Viewer:
    url: str
    process: subprocess.Popen[bytes]

    @property
    def port(self) -> int:
        return int(self.url.split("/")[2].partition(":")[2])

    @property
    def token(self) -> str:
        return self.url.split("/")[3]

    def ask(self, way: str = "", *, method: str = "GET", host: str | None = None, more: str = "") -> Answer:
        """A request behind the token."""
        name = host or f"127.0.0.1:{self.port}"
        return self.send(f"{method} /{self.token}/{way} HTTP/1.1\r\nHost: {name}\r\n{more}\r\n".encode())

    def send(self, data: bytes) -> Answer:
        """Raw bytes, and the answer to them."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
            connection.sendall(data)
            method = data.partition(b" ")[0].decode("latin-1")
            response = HTTPResponse(connection, method=method)
            response.begin()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())


@contextmanager
def viewer(directory: Path, *arguments: str) -> Iterator[Viewer]:
    """`securebench view` on that directory, until the block ends."""
    argv = [sys.executable, "-m", "securebench", "view", str(directory), "--json", *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else b""
            yield Viewer(json.loads(line)["url"], process)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
