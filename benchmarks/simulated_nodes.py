"""Nodes that are not there: behind the same frames as real ones, they answer at once, with vouchers that they sign.

What they do is real where the head can tell (documents, statements, digests, signatures) and nothing where it cannot
(no sandbox, no agent, no network). What it costs is counted apart: on a cluster it is other machines that pay."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from securebench import _json
from securebench._canonical import digest_bytes
from securebench._leftovers import staging_directory
from securebench._tasks import side_tasks
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.store import CandidateStore
from securebench.cluster import frames
from securebench.cluster.documents import Brought, candidate_from, evidence_bytes, judged_json, produced
from securebench.cluster.members import Cluster, Member, first_node
from securebench.cluster.setup import Machine, NodeReport, NodeSetup
from securebench.cluster.shipping import StoredContents
from securebench.engine.executors.wire import Frame
from securebench.families.base import CandidateKind
from securebench.harnesses.base import Production
from securebench.records.keys import signing_key_from
from securebench.records.nodes import PRODUCE, VERIFY, Statement
from securebench.records.record import Judged
from securebench.tester_config import TesterConfig
from securebench.verifiers.base import Assurance, Status

AUDIT = {"id": "simulated", "time": 1.0, "level": "bubblewrap", "checks": 323, "passed": True}
MACHINE = Machine(cpus=1, memory=8 * 2**30, disk=100 * 2**30, kernel="6.1.0", architecture="x86_64", python="3.11.7")


class NodeTime:
    """Processor seconds that belong to nodes."""

    seconds = 0.0


class SimulatedNode:
    """A link with a node at its other end, in this process."""

    def __init__(self, store: CandidateStore, spent: NodeTime) -> None:
        self._store, self._spent = store, spent
        self._key = signing_key_from(secrets.token_bytes(32))
        self._setup: NodeSetup | None = None
        self._orders: dict[int, Any] = {}
        self._answers: deque[Frame] = deque()
        self._more = anyio.Event()

    async def receive(self) -> Frame | None:
        while not self._answers:
            await self._more.wait()
            self._more = anyio.Event()
        return self._answers.popleft()

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        began = time.thread_time()
        answer = self._answer(kind, number, data)
        self._spent.seconds += time.thread_time() - began
        if answer is not None:
            self._answers.append(answer)
            self._more.set()

    def _answer(self, kind: int, number: int, data: bytes) -> Frame | None:
        match kind:
            case frames.SETUP:
                self._setup = NodeSetup.decode(data)
                return Frame(frames.READY, 0, self._report().encode())
            case frames.PING:
                return Frame(frames.PING, 0, b"")
            case frames.PRODUCE:
                self._orders[number] = _json.loads(data)
                return Frame(frames.STARTED, number, b'["true"]')
            case frames.GO:
                return Frame(frames.RESULT, number, self._produced(self._orders.pop(number)))
            case frames.VERIFY:
                return Frame(frames.RESULT, number, self._verified(_json.loads(data)))
        return None

    def _report(self) -> NodeReport:
        return NodeReport(
            key=self._key.id,
            machine=MACHINE,
            backend="bubblewrap",
            why_not=None,
            roots=(None,),
            images={},
            audit=AUDIT,
            tools={},
        )

    def _produced(self, order: Any) -> bytes:
        text = f"    return {order['attempt']}\n"
        candidate = CandidateArtifact(order["task_id"], CandidateKind(order["kind"]), text=text)
        production = Production(candidate, metadata={"exit_status": 0})
        return self._signed(order["task_id"], order["attempt"], candidate, produced(production, self._store))

    def _verified(self, order: Any) -> bytes:
        candidate = candidate_from(order["candidate"], None)
        judged = Judged(Status.PASSED, True, 1.0, Assurance.ISOLATED, stdout="1 of 1 passed\n", metadata={"tests": 1})
        document = {**judged_json(judged), "nonce": secrets.token_hex(16)}
        return self._signed(
            order["task"]["id"],
            order["attempt"],
            candidate,
            Brought(document),
            row=order["task"]["row_digest"],
            **{"status": "passed", "passed": True, "score": 1.0, "assurance": "isolated"},
        )

    def _signed(
        self, task_id: str, attempt: int, candidate: CandidateArtifact, brought: Brought, **verdict: Any
    ) -> bytes:
        assert self._setup is not None
        statement = Statement(
            phase=VERIFY if verdict else PRODUCE,
            run_id=self._setup.run_id,
            task_id=task_id,
            attempt=attempt,
            candidate=candidate.digest,
            securebench=self._setup.securebench,
            evidence=digest_bytes(evidence_bytes(brought.document)),
            **verdict,
        )
        document = {
            "statement": statement.model_dump(mode="json"),
            "signature": self._key.sign(statement.encode()).hex(),
            "brings": [list(item) for item in brought.items],
            "result": brought.document,
        }
        return _json.dumps(document).encode()


Opening = Callable[..., Any]


def simulated(nodes: int, cpus: float, spent: NodeTime) -> Opening:
    """In place of `open_cluster`: as many nodes, taken in as real ones are."""

    @asynccontextmanager
    async def open_simulated(
        config: TesterConfig,
        images: tuple[str | None, ...],
        roles: tuple[str, ...],
        notice: Callable[[str], None],
        *,
        unsafe: bool,
    ) -> AsyncIterator[tuple[Cluster, Member]]:
        with staging_directory() as private:
            store = CandidateStore(Path(private) / "candidates")
            cluster = Cluster(
                lambda role: NodeSetup.of(config, images, role=role, unsafe=unsafe),
                StoredContents(store),
                notice=notice,
                patience=config.executor.patience_seconds,
                roles=roles,
            )
            async with side_tasks() as tasks:
                for number in range(nodes):
                    link = SimulatedNode(store, spent)
                    tasks.start_soon(cluster.attend, f"simulated-{number:04}", "both", cpus, link)
                first = await first_node(cluster, 60.0, lambda member: bool(member.report.roots))
                while len(cluster.members) < nodes:
                    await anyio.sleep(0.01)
                yield cluster, first
                tasks.cancel_scope.cancel()

    return open_simulated
