"""A server in this process, without a sandbox: its tasks are judged by comparing text."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
from tests.e2e.served import TOKEN, make_pack
from tests.e2e.workbench import question

from securebench._tasks import side_tasks
from securebench.benchmark_pack import find_pack, load_benchmark_pack
from securebench.grading import Grader
from securebench.serving.access import Gate
from securebench.serving.limits import ServeLimits
from securebench.serving.server import Server, listen
from securebench.serving.service import Service


@dataclass(frozen=True)
class Running:
    service: Service
    server: Server
    address: tuple[str, int]
    said: list[str]

    def client(self, token: str = TOKEN) -> httpx2.AsyncClient:
        host, port = self.address
        return httpx2.AsyncClient(
            base_url=f"http://{host}:{port}", headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=120
        )

    def connect(self) -> socket.socket:
        connection = socket.create_connection(self.address, timeout=60)
        connection.setblocking(False)
        return connection


@asynccontextmanager
async def running(directory: Path, limits: ServeLimits | None = None, tasks: int = 3) -> AsyncIterator[Running]:
    pack = load_benchmark_pack(*find_pack(make_pack(directory, [question(n) for n in range(tasks)])))
    said: list[str] = []
    with listen("127.0.0.1", 0) as listener:
        service = Service(pack, limits or ServeLimits(), said.append)
        server = Server(service, Gate(TOKEN), listener)
        address, ready = listener.getsockname()[:2], anyio.Event()
        async with side_tasks() as group:
            group.start_soon(server.run, Grader(pack, processes=0), ready.set)
            await ready.wait()
            yield Running(service, server, address, said)


async def ended(connection: socket.socket, seconds: float) -> bool:
    """Whether the server ends this connection within that time."""
    with anyio.move_on_after(seconds):
        while True:
            await anyio.wait_readable(connection)
            try:
                if not connection.recv(65536):
                    return True
            except BlockingIOError:
                continue
            except OSError:
                return True
    return False
