"""Agents that act on the provider behind the broker: one that tires it out, one that brings a key of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.abc

from securebench._tasks import side_tasks
from securebench.audit.plays.agent import LOOKED, environment_of, request_for
from securebench.audit.plays.agent_pack import Markers, marked_task, write_marked_pack
from securebench.audit.plays.network import TLS, BrokenClient, visit
from securebench.audit.plays.network_broker import QUICK, harness, no_tls
from securebench.audit.plays.network_world import ALLOWED, OTHER, certificate, small_internet
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.store import CandidateStore
from securebench.egress.broker import Broker, ModelAccess
from securebench.egress.providers.loading import load_provider
from securebench.harnesses.base import Production
from securebench.harnesses.evidence import EGRESS
from securebench.harnesses.factory import build_harness_producer
from securebench.harnesses.models import model_accesses
from securebench.harnesses.outlets import Outlets
from securebench.testing.model_server import MODEL
from securebench.testing.model_server.connection import Connection, Dropped

Domains = Callable[[Outlets, frozenset[str]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class BlameTheProvider:
    """An agent that wants its attempt not to count, because no model is said to have answered it. The provider answers
    with these statuses, one after the other, and goes on with the last."""

    program: str
    statuses: tuple[int, ...]
    blamed: Callable[[Production], bool] | None = None

    async def on(self, ground: Ground) -> Seen:
        pack = ground.directory / "pack"
        write_marked_pack(pack, Markers(), environment_of(ground.root))
        task, store = marked_task(pack, "short_answer"), CandidateStore(ground.directory / "store")
        async with _provider(self.statuses) as base:
            model = {"provider": "openai_compatible", "base_url": base, "model": MODEL}
            config = harness(pack, self.program, [model], {})
            async with Broker(model_accesses(config), patience=QUICK, ssl_context=no_tls()) as broker:
                made = await build_harness_producer(config, ground.sandbox, broker).produce(request_for(task, store))
        if LOOKED not in made.stdout:
            raise BrokenClient(f"{made.failure}: {made.stderr[-300:]}")
        blamed = self.blamed(made) if self.blamed is not None else made.fault is not None
        return Seen(End.REACHED if blamed else End.MISSED, made.fault or "the attempt counts")


def statuses_of(made: Production) -> list[int]:
    """What the provider answered, as the evidence has it."""
    return [exchange["status"] for exchange in json.loads(made.evidence[EGRESS])["exchanges"]]


@dataclass(frozen=True, slots=True)
class OwnKey:
    """An agent with a key of its own, whose provider's host, or another one, is on the list of allowed domains."""

    host: str
    domains: Domains | None = None

    async def on(self, ground: Ground) -> Seen:
        listed = frozenset({ALLOWED, OTHER})
        access = ModelAccess(load_provider("openai"), "gpt-5", f"https://{ALLOWED}/v1", "sk-of-the-operator")
        async with Broker([access], ssl_context=no_tls()) as broker:
            outlets = Outlets(broker, listed)
            domains = tuple(
                await _reachable(outlets, ground) if self.domains is None else self.domains(outlets, listed)
            )
            with small_internet(ground.directory) as world:
                told = {"visits": [[self.host] * 3], "ca": certificate(ground.directory)[0].read_text()}
                printed, _ = await visit(ground, world, TLS, told, domains)
        reached = world.gift in printed or world.prize in printed
        return Seen(End.REACHED if reached else End.MISSED, f"{self.host} of {', '.join(sorted(domains))}")


async def _reachable(outlets: Outlets, ground: Ground) -> frozenset[str]:
    """What the proxy of a real attempt lets through."""
    pack = ground.directory / "pack"
    write_marked_pack(pack, Markers())
    request = request_for(marked_task(pack, "short_answer"), CandidateStore(ground.directory / "store"))
    async with outlets.open(request) as outlet:
        return outlet.rules.domains if outlet.rules is not None else frozenset()


@asynccontextmanager
async def _provider(statuses: tuple[int, ...]) -> AsyncIterator[str]:
    """A provider that answers with these statuses, and its base URL."""
    left = list(statuses)

    async def answer(stream: anyio.abc.ByteStream) -> None:
        try:
            async with stream:
                connection = Connection(stream)
                while await connection.request() is not None:
                    await connection.send(left.pop(0) if len(left) > 1 else left[0], {"error": {"message": "no"}})
        except (Dropped, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, side_tasks() as tasks:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 — no Django here
        tasks.start_soon(listener.serve, answer)
        yield f"http://127.0.0.1:{port}/v1"
