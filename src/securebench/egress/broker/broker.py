"""The broker of a run: the keys, the budget of the run, and the connections to the providers."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio

from securebench.egress.broker.access import ModelAccess
from securebench.egress.broker.budget import AttemptBudget, BudgetLimits, RunBudget
from securebench.egress.broker.exchange import OnExchange
from securebench.egress.broker.session import BrokerSession
from securebench.egress.broker.upstream import Patience, Upstream
from securebench.errors import ConfigError


class Broker:
    """One a run: `async with Broker(...) as broker`, then one `session` an attempt. Raises ConfigError."""

    def __init__(
        self,
        accesses: Sequence[ModelAccess],
        *,
        run: BudgetLimits | None = None,
        attempt: BudgetLimits | None = None,
        patience: Patience | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._accesses = tuple(accesses)
        self._run_limits = run or BudgetLimits()
        self._attempt_limits = attempt or BudgetLimits()
        self._upstream = Upstream(patience or Patience(), ssl_context)
        self._budget: RunBudget | None = None
        _check_together(self._accesses)
        if self._run_limits.usd is not None or self._attempt_limits.usd is not None:
            _check_prices(self._accesses)

    def __repr__(self) -> str:
        return f"<Broker of {', '.join(access.provider.name for access in self._accesses)}>"

    async def __aenter__(self) -> Broker:
        await self._upstream.__aenter__()
        self._budget = RunBudget(self._run_limits, anyio.current_time())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._upstream.__aexit__(*error)

    @property
    def exhausted(self) -> str | None:
        """Which budget of the run is used up, as `run.usd`: no attempt can ask anything any more."""
        return self._budget.ledger.used_up(anyio.current_time()) if self._budget else None

    @property
    def hosts(self) -> frozenset[str]:
        """Where the providers are."""
        return frozenset(urlsplit(access.base_url).hostname or "" for access in self._accesses)

    def spent_before(self, requests: int, tokens: int, usd: float) -> None:
        """What earlier starts of the same run used counts against its budget."""
        if self._budget is not None:
            ledger = self._budget.ledger
            ledger.requests += requests
            ledger.tokens += tokens
            ledger.usd += usd

    @asynccontextmanager
    async def session(self, label: str, on_exchange: OnExchange | None = None) -> AsyncIterator[BrokerSession]:
        """The access of one attempt, with a placeholder and a budget of its own."""
        if self._budget is None:
            raise RuntimeError("the broker is not open")
        budget = AttemptBudget(self._attempt_limits, self._budget, anyio.current_time())
        session = BrokerSession(label, self._accesses, budget, self._upstream, on_exchange)
        try:
            yield session
        finally:
            session.close()


def _check_together(accesses: Sequence[ModelAccess]) -> None:
    names: set[str] = set()
    for access in accesses:
        agent = access.provider.agent
        mine = {access.provider.name, agent.key_env, agent.base_url_env}
        if mine & names:
            raise ConfigError(
                f"provider {access.provider.name}: another provider of this run has its name or its variables; "
                "give one of them a provider file with names of its own"
            )
        names |= mine


def _check_prices(accesses: Sequence[ModelAccess]) -> None:
    for access in accesses:
        for model in access.without_price():
            raise ConfigError(
                f"the budget in usd needs the price of {model!r}, which provider {access.provider.name} does not know; "
                f"state it in the configuration: prices: {{{model}: {{input: 1.25, output: 10}}}} "
                "(US dollars for a million tokens), or use a budget of tokens"
            )
