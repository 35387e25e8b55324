"""What a model is sent: the real chat harness through the real broker, to a model of ours that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from securebench.audit.plays.agent import request_for
from securebench.audit.plays.agent_pack import Markers, forms, marked_task, write_marked_pack
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.store import CandidateStore
from securebench.harnesses.factory import build_harness_producer
from securebench.harnesses.models import open_broker
from securebench.tasks import SecureBenchTask
from securebench.tester_config import parse_tester_config
from securebench.testing.model_server import KEY, MODEL, Turn, serve_model

Payload = Callable[[SecureBenchTask], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ModelIsAsked:
    """A model that wants to find the marker it seeks in what it is sent. `payload` is what the harness is told of the
    task, where it is not what a harness may know."""

    family: str
    seek: Literal["private", "public"] = "private"
    payload: Payload | None = None

    async def on(self, ground: Ground) -> Seen:
        marks, pack = Markers(), ground.directory / "pack"
        write_marked_pack(pack, marks)
        task = marked_task(pack, self.family)
        request = request_for(task, CandidateStore(ground.directory / "store"))
        if self.payload is not None:
            request = replace(request, payload=self.payload(task))
        async with serve_model([Turn("Answer: 1")]) as server:
            config = parse_tester_config(
                {
                    "schema_version": "0.3",
                    "run": {"id": "audit", "output_dir": "out"},
                    "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
                    "harness": {
                        "type": "chat",
                        "config": {"base_url": server.base_url, "model": MODEL, "api_key_env": "MODEL_KEY"},
                    },
                },
                base_dir=pack,
                env={"MODEL_KEY": KEY},
            )
            async with open_broker(config) as broker:
                made = await build_harness_producer(config, None, broker).produce(request)
            sent = "\n".join(f"{asked.path}{asked.headers}{asked.body.decode()}" for asked in server.requests)
        if made.fault is not None or not server.asked:
            return Seen(End.FAULT, made.fault or "the model was asked nothing")
        wanted = marks.private if self.seek == "private" else marks.public
        return Seen(End.REACHED if any(form in sent for form in forms(wanted)) else End.MISSED, f"{self.seek} data")
