"""Nodes that speak the protocol and do not tell the truth: simulators of whoever took a node over."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from securebench._canonical import digest_bytes
from securebench.cluster import frames
from securebench.cluster.documents import evidence_bytes
from securebench.cluster.setup import Machine, NodeReport, NodeSetup
from securebench.engine.executors.wire import Connection, Frame
from securebench.records.keys import SigningKey, signing_key_from
from securebench.records.nodes import Statement

Document = dict[str, Any]
Twist = Callable[[Document], Document]


def honest(document: Document) -> Document:
    return document


@dataclass
class Liar:
    """Says of every candidate that it passed. `of_statement` changes what is signed, `of_answer` what is sent after
    that; `first` are frames that it sends before its answer, if it is not `silent`. It joins when `joins` says so."""

    key: SigningKey = field(default_factory=lambda: signing_key_from(b"\1" * 32))
    signs_with: SigningKey | None = None
    of_statement: Twist = honest
    of_result: Twist = honest
    of_answer: Twist = honest
    first: tuple[tuple[int, bytes], ...] = ()
    joins: Callable[[], bool] = lambda: True
    silent: bool = False
    heard: list[Frame] = field(default_factory=list)

    async def __call__(self, head: Connection) -> None:
        setup_frame = await head.receive()
        assert setup_frame is not None
        setup = NodeSetup.decode(setup_frame.data)
        while not self.joins():
            await anyio.sleep(0.01)
        await head.send(frames.READY, 0, self._report().encode())
        while (frame := await head.receive()) is not None:
            self.heard.append(frame)
            if frame.kind == frames.VERIFY:
                for kind, data in self.first:
                    await head.send(kind, frame.number, data)
                if not self.silent:
                    await head.send(frames.RESULT, frame.number, self._passed(setup, json.loads(frame.data)))

    def _report(self) -> NodeReport:
        return NodeReport(
            key=self.key.id,
            machine=Machine(cpus=2, memory=2**33, disk=2**36, kernel="k", architecture="a", python="3"),
            backend="bubblewrap",
            why_not=None,
            roots=(None,),
            images={},
            audit={"id": "a"},
            tools={},
        )

    def _passed(self, setup: NodeSetup, order: Document) -> bytes:
        result: Document = {
            "status": "passed",
            "passed": True,
            "score": 1.0,
            "assurance": "isolated",
            "failure_reason": None,
            "message": "",
            "stdout": "",
            "stderr": "",
            "metadata": {},
            "controls": [],
            "usage": None,
            "nonce": "0" * 32,
        }
        statement: Document = {
            "phase": "verify",
            "run_id": setup.run_id,
            "task_id": order["task"]["id"],
            "attempt": order["attempt"],
            "row": order["task"]["row_digest"],
            "candidate": digest_bytes(order["candidate"]["text"].encode()),
            "status": "passed",
            "passed": True,
            "score": 1.0,
            "assurance": "isolated",
            "securebench": setup.securebench,
            "evidence": digest_bytes(evidence_bytes(result)),
        }
        result = self.of_result(result)
        if self.of_result is not honest:
            statement["evidence"] = digest_bytes(evidence_bytes(result))
        said = Statement.model_validate(self.of_statement(statement))
        signature = (self.signs_with or self.key).sign(said.encode()).hex()
        answer = {"statement": said.model_dump(mode="json"), "signature": signature, "brings": [], "result": result}
        return json.dumps(self.of_answer(answer)).encode()
