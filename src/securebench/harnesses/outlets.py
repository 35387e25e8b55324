"""The ways out of a producer's sandbox: the credential broker, and a proxy to allowed domains. Nothing else is there.

Both are answered by this process on listeners that live inside the sandbox's own network namespace. What went through
is kept as evidence of the attempt.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from securebench._tasks import side_tasks
from securebench.egress.broker import Exchange
from securebench.egress.decisions import EgressLog
from securebench.egress.proxy import proxy_environment, serve_proxy
from securebench.egress.rules import EgressLimits, EgressRules
from securebench.harnesses.base import ProducerRequest
from securebench.harnesses.doors import ModelDoor, ModelDoors
from securebench.sandboxes.base import Network, Session

BROKER_PORT = 18461
PROXY_PORT = 18462


@dataclass(frozen=True, slots=True)
class Outlets:
    """What all attempts of a run may reach; a task's own domains come on top."""

    broker: ModelDoors | None = None
    domains: frozenset[str] = frozenset()
    private_domains: frozenset[str] = frozenset()
    limits: EgressLimits = field(default_factory=EgressLimits)

    @property
    def spent(self) -> str | None:
        """Which budget of the run is used up, if one is."""
        return self.broker.exhausted if self.broker else None

    @asynccontextmanager
    async def open(self, request: ProducerRequest) -> AsyncIterator[Outlet]:
        """The ways out of one attempt, closed when it ends.

        A provider that the broker asks is reached through it only: with a key that an agent brings along, its host
        would search, fetch and run for the agent, and nobody would count."""
        domains = self.domains | frozenset(request.environment.allowed_domains)
        domains -= self.broker.hosts if self.broker is not None else frozenset()
        async with AsyncExitStack() as stack:
            broker = None
            if self.broker is not None:
                broker = await stack.enter_async_context(self.broker.session(request.task_id))
            private = domains & self.private_domains
            yield Outlet(broker, EgressRules(domains, limits=self.limits, private_domains=private) if domains else None)


@dataclass(slots=True)
class Outlet:
    """The ways out of one attempt."""

    broker: ModelDoor | None = None
    rules: EgressRules | None = None
    log: EgressLog = field(default_factory=EgressLog)

    @property
    def listeners(self) -> tuple[int, ...]:
        return (*((BROKER_PORT,) if self.broker else ()), *((PROXY_PORT,) if self.rules else ()))

    @property
    def network(self) -> Network:
        return Network.LOOPBACK if self.listeners else Network.NONE

    @property
    def models(self) -> Mapping[str, str]:
        """The variables by which an agent reaches its models: addresses and placeholders."""
        return self.broker.environment(BROKER_PORT) if self.broker else {}

    @property
    def proxy(self) -> Mapping[str, str]:
        """The variables by which programs find the proxy."""
        return proxy_environment(PROXY_PORT) if self.rules else {}

    @property
    def exhausted(self) -> str | None:
        """Which budget is used up, if one is."""
        return self.broker.exhausted if self.broker else None

    async def out_of_budget(self) -> None:
        """Returns when a budget is used up; without a broker never."""
        await (self.broker.out_of_budget() if self.broker else anyio.sleep_forever())

    @asynccontextmanager
    async def serving(self, session: Session) -> AsyncIterator[None]:
        """Answer on the sandbox's listeners while the context lasts."""
        async with side_tasks() as tasks:
            if self.broker is not None:
                tasks.start_soon(self.broker.serve, session.listener(BROKER_PORT))
            if self.rules is not None:
                tasks.start_soon(serve_proxy, session.listener(PROXY_PORT), self.rules, self.log)
            yield
        if self.broker is not None:
            await self.broker.settled()

    async def fault(self) -> str | None:
        """Why the providers are to blame: no model ever answered the agent, and none answers us either."""
        if self.broker is None or not self.broker.unanswered or (fault := await self.broker.probe()) is None:
            return None
        return f"no model answered: {fault}"

    @property
    def usage(self) -> Mapping[str, Any]:
        """Requests, tokens and cost of the attempt."""
        return self.broker.usage.as_json() if self.broker else {}

    @property
    def exchanges(self) -> list[Exchange]:
        """The requests to models so far."""
        return self.broker.exchanges if self.broker else []

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.broker.secrets if self.broker else ()

    @property
    def reachable(self) -> list[str]:
        """What the agent could reach, for the record."""
        models = ["broker"] if self.broker else []
        return [*models, *(sorted(self.rules.domains) if self.rules else ())]

    def evidence(self) -> dict[str, Any]:
        """What went through, in plain values."""
        shown: dict[str, Any] = {}
        if self.broker is not None:
            shown["exchanges"] = [exchange.as_json() for exchange in self.exchanges]
            shown["dropped_exchanges"] = self.broker.dropped_exchanges
        if self.rules is not None:
            shown["egress"] = {**self.log.summary(), "decisions": self.log.as_json()}
        return shown
