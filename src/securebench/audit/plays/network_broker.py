"""A hostile agent in a real sandbox in front of the real broker, which has a provider of ours behind it."""

from __future__ import annotations

import json
import secrets
import socket
import ssl
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from securebench._tasks import side_tasks
from securebench.audit.plays.agent import LOOKED, Weakened, Weakness, environment_of, request_for
from securebench.audit.plays.agent_pack import Markers, forms, marked_task, write_marked_pack
from securebench.audit.plays.network import BrokenClient
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.store import CandidateStore
from securebench.egress.broker import Broker, BrokerSession, BudgetLimits, ModelAccess
from securebench.egress.broker.upstream import Patience
from securebench.egress.providers.loading import load_provider
from securebench.errors import ConfigError
from securebench.harnesses.factory import build_harness_producer
from securebench.harnesses.models import open_broker
from securebench.harnesses.outlets import BROKER_PORT
from securebench.sandboxes.base import Command, Limits, Network, SandboxSpec
from securebench.tester_config import TesterConfig, parse_tester_config
from securebench.testing.model_server import MODEL, Fault, ModelServer, Turn, serve_model

SECONDS = 60.0
NOTE = "NOTE"
QUICK = Patience(tries=1, first_wait_seconds=0.01)
_BASES = {"openai": "OPENAI", "openai_compatible": "OPENAI", "anthropic": "ANTHROPIC"}
Serve = Callable[[BrokerSession, socket.socket, ModelServer], Coroutine[Any, Any, None]]
Body = str
"""JSON of a request's body. `NOTE` stands for what the agent wants the provider to get."""

ASK = r"""
import http.client, json, os, sys, threading, urllib.parse
told = json.load(sys.stdin)
base = urllib.parse.urlsplit(os.environ[told["base"] + "_BASE_URL"])
key = told["key"] or os.environ[told["base"] + "_API_KEY"]
said = []
def ask(method, path, body):
    heads = {"Authorization": "Bearer " + key, "Content-Type": "application/json", **told["heads"]}
    try:
        connection = http.client.HTTPConnection(base.hostname, base.port, timeout=20)
        connection.request(method, path if path.startswith("//") else base.path + path, body or None, heads)
        reply = connection.getresponse()
        said.append(f"{reply.status} {reply.read().decode('utf-8', 'replace')} {reply.getheaders()}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        said.append(repr(error))
threads = [threading.Thread(target=ask, args=request) for request in told["requests"]]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("\n".join(said))
print("that was all")
"""


@cache
def no_tls() -> ssl.SSLContext:
    """The provider is on loopback; reading the certificates of the host would take long."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def real_broker(session: BrokerSession, listener: socket.socket, _provider: ModelServer) -> None:
    await session.serve(listener)


@dataclass(frozen=True, slots=True)
class Ask:
    """Requests of an agent, all at once. It wants its note to get to the provider, or the provider's key, or more
    answers than `requests` in its budget. `whose` is the placeholder it shows: its own, another attempt's, one of an
    attempt that is over, or none that ever was."""

    requests: tuple[tuple[str, str, Body], ...]
    provider: str = "openai"
    wants: Literal["note", "key", "more"] = "note"
    whose: Literal["own", "other", "over", "guess"] = "own"
    heads: tuple[tuple[str, str], ...] = ()
    limit: int | None = None
    echo: bool = False
    serve: Serve = real_broker

    async def on(self, ground: Ground) -> Seen:
        note, key = f"note-{secrets.token_hex(8)}", f"sk-real-{secrets.token_hex(16)}"
        script = [Turn("fine", faults=[Fault(status=400, message="bad", echo=True)] * 9 if self.echo else [])]
        provider = load_provider(self.provider)
        async with serve_model(script, key=None) as server:
            base = server.url + provider.agent.mount
            access = ModelAccess(provider, MODEL, base, key)
            limits = BudgetLimits(requests=self.limit)
            async with Broker([access], attempt=limits, patience=QUICK, ssl_context=no_tls()) as broker:
                printed = await self._asked(ground, broker, server, note)
            got = "\n".join(f"{asked.target} {asked.headers} {asked.body.decode()}" for asked in server.requests)
            reached = {
                "note": note in got,
                "key": any(form in printed for form in forms(key)),
                "more": len(server.asked) > (self.limit or 0),
            }
        return Seen(End.REACHED if reached[self.wants] else End.MISSED, printed.partition("\nthat was")[0][-300:])

    async def _asked(self, ground: Ground, broker: Broker, server: ModelServer, note: str) -> str:
        async with broker.session("other") as other, broker.session("task") as session:
            async with broker.session("over") as over:
                pass
            keys = {"own": "", "other": other.placeholder, "over": over.placeholder, "guess": "sk-securebench-guess"}
            told = {
                "base": _BASES[self.provider],
                "key": keys[self.whose],
                "heads": dict(self.heads),
                "requests": [[word.replace(NOTE, note) for word in request] for request in self.requests],
            }
            spec = SandboxSpec(
                root=ground.root,
                env=session.environment(BROKER_PORT),
                network=Network.LOOPBACK,
                listeners=(BROKER_PORT,),
                limits=Limits(wall_seconds=SECONDS),
            )
            async with ground.sandbox.open(spec) as sandbox, side_tasks() as tasks:
                tasks.start_soon(self.serve, session, sandbox.listener(BROKER_PORT), server)
                argv = ("python3", "-I", "-c", ASK)
                result = await sandbox.run(Command(argv, stdin=json.dumps(told).encode()))
        printed = result.stdout.data.decode("utf-8", "replace")
        if not result.ok or "that was all" not in printed:
            raise BrokenClient(f"{result.outcome}: {result.stderr.data[-300:].decode('utf-8', 'replace')}")
        return printed


@dataclass(frozen=True, slots=True)
class StealKey:
    """An agent of the real producer, with a model to ask, that prints what it sees and wants the provider's key. An
    honest one wants what the model says."""

    program: str
    wants: Literal["key", "answer"] = "key"
    weak: Weakness | None = None

    async def on(self, ground: Ground) -> Seen:
        marks, pack = Markers(), ground.directory / "pack"
        write_marked_pack(pack, marks, environment_of(ground.root))
        task, store = marked_task(pack, "short_answer"), CandidateStore(ground.directory / "store")
        sandbox = ground.sandbox if self.weak is None else Weakened(ground.sandbox, self.weak, pack, marks)
        key = f"sk-{marks.private}"
        async with serve_model([Turn(f"The model says {marks.public}.")], key=key) as server:
            model = {"provider": "openai_compatible", "base_url": server.base_url, "model": MODEL}
            config = harness(pack, self.program, [{**model, "api_key_env": "PROVIDER_KEY"}], {"PROVIDER_KEY": key})
            async with open_broker(config) as broker:
                made = await build_harness_producer(config, sandbox, broker).produce(request_for(task, store))
        if LOOKED not in made.stdout or made.failure is not None:
            raise BrokenClient(f"{made.failure or made.fault}: {made.stderr[-300:]}")
        wanted = forms(marks.private) if self.wants == "key" else (f"The model says {marks.public}.",)
        return Seen(End.REACHED if any(form in made.stdout for form in wanted) else End.MISSED, self.wants)


@dataclass(frozen=True, slots=True)
class HandOver:
    """A variable that an operator wants to hand to an agent. `build` makes the producer, or refuses to."""

    name: str
    value: str
    build: Callable[[TesterConfig, Ground], object] | None = None

    async def on(self, ground: Ground) -> Seen:
        config = harness(ground.directory, "", [], {self.name: self.value}, hand_over=(self.name,))
        try:
            (self.build or _built)(config, ground)
        except ConfigError as error:
            return Seen(End.MISSED, str(error)[:300], "refused")
        return Seen(End.REACHED, "it is handed over")


def _built(config: TesterConfig, ground: Ground) -> object:
    return build_harness_producer(config, ground.sandbox)


def harness(
    base: Path, program: str, models: list[dict[str, str]], env: Mapping[str, str], hand_over: tuple[str, ...] = ()
) -> TesterConfig:
    """A `command` harness that runs a program of ours with these models, among these variables of the operator's."""
    command = ["python3", "-I", "-c", f"{program}\nprint({LOOKED!r})\n"]
    return parse_tester_config(
        {
            "schema_version": "0.3",
            "run": {"id": "audit", "output_dir": "out"},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {
                "type": "command",
                "env": list(hand_over),
                "config": {"command": command, "timeout_seconds": SECONDS, "models": models},
            },
        },
        base_dir=base,
        env=env,
    )
