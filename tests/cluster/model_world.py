"""A head with a broker, a model provider, and nodes that are real processes behind socket pairs; no Ray in between."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from tests.e2e.workbench import need_bubblewrap
from tests.upstreams import KEY, Answer, Simulator, fine, provider_like

from securebench._proc import TOOL_ENV
from securebench._tasks import side_tasks
from securebench.candidates.store import CandidateStore
from securebench.cluster import node as node_process
from securebench.cluster.members import Cluster, Member, first_node
from securebench.cluster.opening import NODE_MODULE
from securebench.cluster.remote import RemoteProducer
from securebench.cluster.setup import NodeSetup
from securebench.cluster.shipping import StoredContents
from securebench.egress.broker import Broker
from securebench.engine.executors.wire import Connection, Frame, encode_frame
from securebench.environment import TaskEnvironment
from securebench.families.base import CandidateKind
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.models import open_broker
from securebench.records.keys import signing_key_from
from securebench.resources import Component, ResourceView
from securebench.tester_config import TesterConfig, parse_tester_config

ASK = """
import json, os, sys, urllib.request, urllib.error
def ask(text="2+2", **more):
    body = json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": text}], **more}).encode()
    head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, head)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
"""


class RecordingLink:
    """A connection to a node, and all that went over it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.sent, self.received = bytearray(), list[Frame]()

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        self.sent += encode_frame(kind, number, data)
        await self._connection.send(kind, number, data)

    async def receive(self) -> Frame | None:
        frame = await self._connection.receive()
        if frame is not None:
            self.received.append(frame)
        return frame


@dataclass
class World:
    """What a test has of it."""

    simulator: Simulator
    broker: Broker
    producer: RemoteProducer
    member: Member
    link: RecordingLink
    process: subprocess.Popen[bytes] | None
    store: CandidateStore
    said: list[tuple[str, bytes]] = field(default_factory=list)

    async def produce(self, task_id: str = "t1", **payload: Any) -> Production:
        return await self.producer.produce(
            ProducerRequest(
                task_id=task_id,
                attempt=1,
                kind=CandidateKind.TEXT,
                payload={"task_id": task_id, **payload},
                view=ResourceView(Component.AGENT, ()),
                environment=TaskEnvironment(timeout_seconds=100, cpus=0.1, memory=256 * 2**20),
                store=self.store,
                on_output=lambda stream, data: self.said.append((task_id, data)),
            )
        )

    def printed(self, task_id: str) -> bytes:
        return b"".join(data for name, data in self.said if name == task_id)


def config_of(
    directory: Path,
    port: int,
    program: str,
    harness: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> TesterConfig:
    use = {"provider": "openai", "model": "gpt-5", "base_url": f"http://127.0.0.1:{port}/v1", "api_key_env": "THE_KEY"}
    command = {"command": ["python3", "-c", ASK + program], "models": [use]}
    return parse_tester_config(
        {
            "schema_version": "0.3",
            "run": {"id": "r1", "output_dir": "out"},
            "benchmark": {"manifest": "m.yaml", "tasks": "t.jsonl"},
            "harness": harness or {"type": "command", "config": command, "env": ["GREETING"]},
            **more,
        },
        base_dir=directory,
        env=environment or {"THE_KEY": KEY, "GREETING": "hello"},
    )


@contextmanager
def node(end: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    path = os.pathsep.join(entry for entry in sys.path if Path(entry).is_absolute())
    argv = [sys.executable, "-P", "-m", NODE_MODULE, str(end.fileno())]
    process = subprocess.Popen(argv, env={**TOOL_ENV, "PYTHONPATH": path}, pass_fds=(end.fileno(),))
    end.close()
    try:
        yield process
    finally:
        if process.poll() is None:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@asynccontextmanager
async def world(
    directory: Path,
    program: str,
    answer: Answer = fine,
    *,
    own_process: bool = True,
    harness: dict[str, Any] | None = None,
    **sections: Any,
) -> AsyncIterator[World]:
    """A node that is ready; with `own_process` off it lives in this one, where a test can reach its settings."""
    need_bubblewrap()
    async with provider_like(answer) as simulator:
        config = config_of(directory, simulator.port, program, harness, **sections)
        store = CandidateStore(directory / "candidates")
        cluster = Cluster(
            lambda role: NodeSetup.of(config, (None,), role=role, unsafe=False),
            StoredContents(store),
            notice=lambda text: None,
            patience=5,
        )
        cluster.enrol_with("r1", signing_key_from(b"k" * 32))
        ours, theirs = socket.socketpair()
        link = RecordingLink(Connection(ours))
        async with open_broker(config) as broker, side_tasks() as tasks:
            assert broker is not None
            process = None
            if own_process:
                with node(theirs) as process, ours:
                    async with side_tasks() as attending:
                        attending.start_soon(cluster.attend, "n1", "both", 4.0, link)
                        yield await _open(cluster, simulator, broker, config, link, process, store)
                    ours.close()
                return
            with ours, theirs:
                tasks.start_soon(node_process.serve, Connection(theirs))
                tasks.start_soon(cluster.attend, "n1", "both", 4.0, link)
                yield await _open(cluster, simulator, broker, config, link, None, store)


async def _open(
    cluster: Cluster,
    simulator: Simulator,
    broker: Broker,
    config: TesterConfig,
    link: RecordingLink,
    process: subprocess.Popen[bytes] | None,
    store: CandidateStore,
) -> World:
    with anyio.fail_after(100):
        member = await first_node(cluster, 30, lambda member: bool(member.report.roots))
    producer = RemoteProducer(cluster, "r1", store, config.sandbox, 1.0, broker)
    return World(simulator, broker, producer, member, link, process, store)
