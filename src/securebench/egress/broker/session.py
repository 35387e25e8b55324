"""One attempt's access to models: its placeholder, its budget, and the way of a request through the broker."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.to_thread

from securebench.egress.broker.access import ModelAccess
from securebench.egress.broker.admission import Headers, Route, route_path
from securebench.egress.broker.body_rules import AdmittedBody, judge_body, judge_value
from securebench.egress.broker.budget import AttemptBudget, BudgetExhausted, Reservation
from securebench.egress.broker.exchange import MAX_COPY, Exchange, ExchangeLog, OnExchange, Reply, ReplySink
from securebench.egress.broker.metering import Usage
from securebench.egress.broker.passage import Draft, Interrupted, fault_of, pass_on
from securebench.egress.broker.refusal import Refused, error_body
from securebench.egress.broker.upstream import Upstream, is_busy, is_denied
from securebench.egress.providers.schema import Price

MAX_REPLY = 64 * 1024 * 1024  # of a request made in this process
MOST_UNANSWERED = 30  # requests; who asks more often in vain than any agent's own retries do is the cause of it
IN_A_THREAD = 512 * 1024  # bodies from this size on are judged beside the event loop


class BrokerSession:
    """Serves one attempt. Made by `Broker.session`; its placeholder is worth nothing anywhere else or afterwards."""

    def __init__(
        self,
        label: str,
        accesses: Sequence[ModelAccess],
        budget: AttemptBudget,
        upstream: Upstream,
        on_exchange: OnExchange | None = None,
    ) -> None:
        self.label = label
        self.accesses = tuple(accesses)
        self.placeholder = f"sk-securebench-{secrets.token_urlsafe(32)}"
        self.usage = Usage()
        self._budget = budget
        self._upstream = upstream
        self._on_exchange = on_exchange
        self._log = ExchangeLog()
        self._started = anyio.current_time()
        self._exhausted: str | None = None
        self._bell = anyio.Event()
        self._open = True
        self._large = anyio.CapacityLimiter(1)  # one agent must not keep the processors busy with its bodies
        self._asked = self._answered = False
        self._seen: set[int] = set()  # statuses of replies

    def __repr__(self) -> str:
        return f"<BrokerSession {self.label!r}>"

    def environment(self, port: int) -> dict[str, str]:
        """The variables for an agent whose sandbox has this session's listener on that port."""
        result = {}
        for access in self.accesses:
            agent = access.provider.agent
            result[agent.key_env] = self.placeholder
            result[agent.base_url_env] = f"http://127.0.0.1:{port}/{access.provider.name}{agent.mount}"
        return result

    async def serve(self, listener: socket.socket) -> None:
        """Answer HTTP on a listening socket until cancelled."""
        from securebench.egress.broker.server import serve

        await serve(self, listener)

    async def ask(self, access: ModelAccess, path: str, body: dict[str, Any]) -> Reply:
        """One request of this process, path below the provider's base URL: same rules, budget, retries and records.

        A refusal comes back as the reply an agent would get, `exhausted` tells whether the budget was the reason."""
        memory = _Memory()
        try:
            route = route_path(access, "POST", path)
        except Refused as refused:
            await self.refuse(access, "POST", path, refused, memory)
        else:
            try:
                await self.exchange(route, (), body, memory)
            except Interrupted:
                message = "the reply broke off or was too large"
                return Reply(502, error_body(access.provider, "upstream_interrupted", message))
        return Reply(memory.status, bytes(memory.body))

    @property
    def exchanges(self) -> list[Exchange]:
        """Summaries of the requests so far, the first of them; `dropped_exchanges` counts the rest."""
        return list(self._log.kept)

    @property
    def dropped_exchanges(self) -> int:
        return self._log.dropped

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written down of this attempt."""
        return (self.placeholder, *(access.key for access in self.accesses if access.key))

    @property
    def unanswered(self) -> bool:
        """Whether requests of the attempt were passed on, and none of them was served, be it with an error of its own.

        An agent may use up a provider's patience until it serves nobody, to have its attempt not count: so a provider
        that served it once, or was asked very often, is not looked at."""
        return self._asked and not self._answered and self.usage.requests <= MOST_UNANSWERED

    async def probe(self) -> str | None:
        """What is wrong with the providers, seen by asking them ourselves what models they have; None if nothing.

        An agent can provoke a provider's errors, and must not decide by them whether its attempt counts."""
        for access in self.accesses:
            if (fault := await fault_of(self._upstream, access, self._seen)) is not None:
                return fault
        return None

    async def settled(self) -> None:
        """Nothing is asked any more, and all that was asked is counted: here it is, as soon as nobody serves."""

    @property
    def exhausted(self) -> str | None:
        """The budget for want of which something was refused or cut, as `attempt.tokens` or `run.usd`."""
        if self._exhausted is None and self._open and anyio.current_time() >= self._budget.deadline:
            self._run_out(self._budget.over())
        return self._exhausted

    async def out_of_budget(self) -> str:
        """Returns when `exhausted` becomes true, and what it is."""
        while (budget := self.exhausted) is None:
            with anyio.CancelScope(deadline=self._budget.deadline):
                await self._bell.wait()
        return budget

    def close(self) -> None:
        """What happens from now on does not count any more."""
        self._exhausted = self.exhausted
        self._open = False

    def _run_out(self, budget: str) -> None:
        if self._exhausted is None:
            self._exhausted = budget
            self._bell.set()

    async def refuse(
        self, access: ModelAccess | None, method: str, path: str, refused: Refused, sink: ReplySink
    ) -> None:
        """Answer and write down a request that was refused for its head."""
        draft = self._draft(access, method[:20], path)
        try:
            await self._answer_refusal(access, refused, draft, sink)
        finally:
            self._finish(draft)

    async def exchange(self, route: Route, headers: Headers, body: bytes | dict[str, Any], sink: ReplySink) -> None:
        """Judge, pay for and pass on one request whose head was found right. Errors of `sink` go through."""
        draft = self._draft(route.access, route.endpoint.method, route.path)
        try:
            try:
                if not self._open:
                    raise Refused(401, "authentication_error", "the attempt of this placeholder is over")
                admitted = await self._judge(route, body)
                if admitted is not None:
                    draft.model, draft.request = admitted.model, admitted.data
                await self._paid(route, headers, admitted, draft, sink)
            except Refused as refused:
                await self._answer_refusal(route.access, refused, draft, sink)
            except BudgetExhausted as error:
                self._run_out(error.budget)
                message = f"{error}; this attempt can ask no more"
                await self._answer_refusal(route.access, Refused(403, "budget_exhausted", message), draft, sink)
        finally:
            self._finish(draft)

    def _draft(self, access: ModelAccess | None, method: str, path: str) -> Draft:
        name = access.provider.name if access is not None else ""
        keep = MAX_COPY if self._on_exchange is not None else 0
        return Draft(self._log.number(), anyio.current_time() - self._started, name, method, path, keep=keep)

    async def _judge(self, route: Route, body: bytes | dict[str, Any]) -> AdmittedBody | None:
        if route.endpoint.body is None:
            if body:
                raise Refused(400, "invalid_request_error", "a request of this kind has no body")
            return None
        if isinstance(body, dict):
            return judge_value(route.access, route.endpoint, body)
        if len(body) >= IN_A_THREAD:
            return await anyio.to_thread.run_sync(judge_body, route.access, route.endpoint, body, limiter=self._large)
        return judge_body(route.access, route.endpoint, body)

    async def _paid(
        self, route: Route, headers: Headers, admitted: AdmittedBody | None, draft: Draft, sink: ReplySink
    ) -> None:
        price = route.access.price(admitted.model) if admitted else None
        metered = route.endpoint.metered and admitted is not None
        wanted = self._reservation(admitted, price) if admitted and metered else Reservation(0, 0.0)
        await self._budget.admit(wanted)
        self._asked = True
        try:
            with anyio.CancelScope(deadline=self._budget.deadline) as scope:
                await pass_on(self._upstream, route, headers, admitted, draft, sink)
            if scope.cancelled_caught:
                draft.refused = f"budget_exhausted: {self._budget.over()}"
                self._run_out(self._budget.over())
                if draft.started:
                    raise Interrupted
                raise BudgetExhausted(self._budget.over())
        finally:
            draft.usage = Usage(requests=1)
            if metered and draft.meter is not None:
                least = admitted.output_tokens if admitted and draft.abandoned else 0
                draft.usage = draft.meter.finish(len(draft.request), price, least)
            self._budget.settle(wanted, draft.usage.tokens, draft.usage.cost_usd or 0.0)
            self.usage += draft.usage
            if draft.started:
                self._answered |= not (is_busy(draft.status) or is_denied(draft.status))
                self._seen.add(draft.status)

    def _reservation(self, admitted: AdmittedBody, price: Price | None) -> Reservation:
        if price is None and self._budget.counts_money:
            message = f"the model {admitted.model[:80]!r} has no known price, and this run has a budget of money"
            raise Refused(400, "model_not_allowed", message)
        usd = (
            (price.input * admitted.input_tokens + price.output * admitted.output_tokens) / 1_000_000 if price else 0.0
        )
        return Reservation(admitted.input_tokens + admitted.output_tokens, usd)

    async def _answer_refusal(
        self, access: ModelAccess | None, refused: Refused, draft: Draft, sink: ReplySink
    ) -> None:
        body = error_body(access.provider if access else None, refused.kind, refused.message)
        draft.status, draft.refused = refused.status, f"{refused.kind}: {refused.message}"
        draft.copy(body)
        heads = [("content-type", "application/json"), ("content-length", str(len(body)))]
        # The official clients ask again on their own unless told not to.
        heads += [] if refused.status >= 500 else [("x-should-retry", "false")]
        await sink.start(refused.status, heads)
        await sink.chunk(body)
        await sink.end()

    def _finish(self, draft: Draft) -> None:
        exchange = draft.exchange(anyio.current_time() - self._started)
        self._log.add(exchange)
        if self._on_exchange is not None:
            self._on_exchange(exchange, draft.request[:MAX_COPY], bytes(draft.reply))


class _Memory:
    """A sink for requests made in this process."""

    def __init__(self) -> None:
        self.status = 0
        self.body = bytearray()

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:  # noqa: ARG002
        self.status = status

    async def chunk(self, data: bytes) -> None:
        self.body += data
        if len(self.body) > MAX_REPLY:
            raise Interrupted

    async def flush(self) -> None:
        pass

    async def end(self) -> None:
        pass
