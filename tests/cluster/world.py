"""A cluster without Ray: nodes are real processes of ours behind socket pairs, and every byte that goes to one is kept.

world = World(tmp_path)
world.add("a")                                  # a process
world.add("p", role="produce", kill=at(STARTED))  # one that is killed when that frame has come from it
world.add("x", serve=liar)                      # a simulator that speaks the protocol
records = world.run(rows, "echo 42")            # a whole run over them
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
from anyio.abc import TaskGroup

from securebench._proc import TOOL_ENV
from securebench._tasks import side_tasks
from securebench.candidates.store import CandidateStore
from securebench.cluster.members import Cluster, Member, first_node
from securebench.cluster.opening import NODE_MODULE
from securebench.cluster.setup import NodeSetup
from securebench.cluster.shipping import StoredContents
from securebench.engine.executors.wire import Connection, Frame, encode_frame
from securebench.errors import SecureBenchError
from securebench.records.summary import TesterRunSummary
from securebench.tester_config import TesterConfig, load_tester_config
from securebench.tester_run import run_tester_config

Serve = Callable[[Connection], Awaitable[None]]
When = Callable[[Frame], bool]
"""Whether the moment has come, asked of every frame that came from a node or went there."""


class RecordingLink:
    """A connection that keeps what goes out, and looks at what comes in."""

    def __init__(self, connection: Connection, sent: bytearray, seen: Callable[[Frame], None]) -> None:
        self._connection, self._sent, self._seen = connection, sent, seen
        self.lost: str | None = None

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        self._sent += encode_frame(kind, number, data)
        await self._connection.send(kind, number, data)
        self._seen(Frame(kind, number, data))

    async def receive(self) -> Frame | None:
        frame = await self._connection.receive()
        if frame is not None:
            self._seen(frame)
        return frame


@dataclass
class Node:
    """One node of the world, and what became of it."""

    name: str
    role: str
    cpus: float | None
    temporary: Path
    env: dict[str, str]
    serve: Serve | None = None
    kill: When | None = None
    after: str | None = None  # starts when that one has ended
    sent: bytearray = field(default_factory=bytearray)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    ended: str | SecureBenchError | None = None
    over: anyio.Event = field(default_factory=anyio.Event)

    @contextmanager
    def link(self, tasks: TaskGroup) -> Iterator[RecordingLink]:
        ours, theirs = socket.socketpair()
        with ours:
            if self.serve is not None:
                tasks.start_soon(self._play, self.serve, theirs)
            else:
                with theirs:
                    self.processes.append(self._start(theirs))
            yield RecordingLink(Connection(ours), self.sent, self._saw)

    async def _play(self, serve: Serve, end: socket.socket) -> None:
        with end:
            await serve(Connection(end))

    def _start(self, end: socket.socket) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(entry for entry in sys.path if Path(entry).is_absolute())
        env = {**TOOL_ENV, "PYTHONPATH": path, "TMPDIR": str(self.temporary), **self.env}
        argv = [sys.executable, "-P", "-m", NODE_MODULE, str(end.fileno())]
        return subprocess.Popen(argv, env=env, pass_fds=(end.fileno(),), cwd="/", start_new_session=True)

    def _saw(self, frame: Frame) -> None:
        if self.kill is not None and self.kill(frame):
            self.kill = None
            self.slay()

    def slay(self) -> None:
        """As a machine that loses its power does."""
        for process in self.processes:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait(60)


class World:
    """Nodes, and runs over them. `directory` is where packs and runs lie."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.temporary = Path(tempfile.mkdtemp(prefix="world-"))
        self.temporary.chmod(0o755)  # users that sandboxes are given must pass
        self.nodes: dict[str, Node] = {}
        self.notices: list[str] = []
        self.cluster: Cluster | None = None

    def add(
        self,
        name: str,
        role: str = "both",
        cpus: float | None = 2.0,
        *,
        serve: Serve | None = None,
        kill: When | None = None,
        after: str | None = None,
        **env: str,
    ) -> Node:
        node = Node(name, role, cpus, self.temporary, env, serve, kill, after)
        self.nodes[name] = node
        return node

    @asynccontextmanager
    async def open_cluster(
        self,
        config: TesterConfig,
        images: tuple[str | None, ...],
        roles: tuple[str, ...],
        notice: Callable[[str], None],
        *,
        unsafe: bool,
    ) -> AsyncIterator[tuple[Cluster, Member]]:
        """In the place of the one that asks Ray."""

        def noticed(text: str) -> None:
            self.notices.append(text)
            notice(text)

        self.cluster = cluster = Cluster(
            lambda role: NodeSetup.of(config, images, role=role, unsafe=unsafe),
            StoredContents(CandidateStore(self.temporary / "unused")),
            notice=noticed,
            patience=config.executor.patience_seconds,
            roles=roles,
        )
        async with side_tasks() as tasks:
            for node in self.nodes.values():
                tasks.start_soon(self._attend, node, cluster, tasks)
            first = await first_node(cluster, 60, lambda member: bool(member.report.roots))
            cluster.tell_missing()
            yield cluster, first
        for node in self.nodes.values():
            for process in node.processes:
                await anyio.to_thread.run_sync(process.wait, 120)

    async def _attend(self, node: Node, cluster: Cluster, tasks: TaskGroup) -> None:
        if node.after is not None:
            await self.nodes[node.after].over.wait()
        try:
            with node.link(tasks) as link:
                node.ended = await cluster.attend(node.name, node.role, node.cpus, link)
        except SecureBenchError as error:
            node.ended = error
        finally:
            node.over.set()

    def config(self, rows: Iterable[dict[str, Any]], command: str | list[str], **more: Any) -> TesterConfig:
        """A tester file for a command agent over these rows, read."""
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "manifest.yaml").write_text("id: world\nversion: 1\n")
        (self.directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        tester: dict[str, Any] = {
            "schema_version": "0.3",
            "run": {"id": "world", "output_dir": "out"},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {"type": "command", "config": {"command": command}},
            "executor": {"type": "ray", "patience_seconds": 15},
        }
        for name, value in more.items():
            tester[name] = {**tester.get(name, {}), **value}
        path = self.directory / "tester.yaml"
        path.write_text(json.dumps(tester))
        return load_tester_config(path)

    def carry_out(self, config: TesterConfig, **options: Any) -> TesterRunSummary:
        """A whole run over the nodes there are."""
        with mock.patch("securebench.cluster.opening.open_cluster", self.open_cluster):
            return run_tester_config(config, **options)

    def run(self, rows: Iterable[dict[str, Any]], command: str | list[str], **more: Any) -> list[dict[str, Any]]:
        """A whole run; its records."""
        config = self.config(rows, command, **more)
        self.carry_out(config)
        return self.records()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "out" / "candidates.jsonl").read_bytes().splitlines()]

    def leftovers(self) -> list[str]:
        """Directories that nodes left, and processes that still work in them."""
        left = [str(path) for path in self.temporary.iterdir() if path.name.startswith("securebench-")]
        return left + [f"process {pid}" for pid in processes_naming(str(self.temporary))]

    def end(self) -> None:
        for node in self.nodes.values():
            node.slay()
        shutil.rmtree(self.temporary, ignore_errors=True)


def processes_naming(text: str) -> list[int]:
    """Processes other than this one in whose command line or environment the text stands."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in said:
                found.append(int(entry.name))
    return found


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether it comes to hold in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def at(kind: int, *, nth: int = 1) -> When:
    """The moment when the nth frame of that kind has come."""
    left = nth

    def come(frame: Frame) -> bool:
        nonlocal left
        left -= frame.kind == kind
        return left <= 0

    return come
