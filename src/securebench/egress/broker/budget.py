"""What may be spent, and who is told when it is gone.

A request reserves what it may use before it is sent. While others have reserved the rest, it waits; when the rest is
really spent, it is refused. So whatever runs at once, a budget is passed by at most what one request uses beyond its
own reservation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import anyio

from securebench.errors import ConfigError


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The most that may be used; None is no limit. Tokens are input and output together."""

    tokens: int | None = None
    usd: float | None = None
    requests: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "usd", "requests", "seconds"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"budget: {name} must be a number greater than zero")


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a request may use at most, as far as it says so itself."""

    tokens: int
    usd: float


class BudgetExhausted(Exception):
    """A budget is used up; `budget` says which, as `attempt.tokens`."""

    def __init__(self, budget: str) -> None:
        super().__init__(f"the budget {budget} is used up")
        self.budget = budget


class Ledger:
    """One budget: what was used, what is reserved by requests under way, and when its time is over."""

    def __init__(self, name: str, limits: BudgetLimits, started: float) -> None:
        self.name = name
        self.limits = limits
        self.deadline = math.inf if limits.seconds is None else started + limits.seconds
        self.tokens = 0
        self.usd = 0.0
        self.requests = 0
        self._reserved_tokens = 0
        self._reserved_usd = 0.0

    def used_up(self, now: float) -> str | None:
        """Which limit is reached."""
        limits = self.limits
        if now >= self.deadline:
            return f"{self.name}.seconds"
        if limits.requests is not None and self.requests >= limits.requests:
            return f"{self.name}.requests"
        if limits.tokens is not None and self.tokens >= limits.tokens:
            return f"{self.name}.tokens"
        if limits.usd is not None and self.usd >= limits.usd:
            return f"{self.name}.usd"
        return None

    def has_room(self) -> bool:
        """Whether anything is left beside what is reserved."""
        tokens, usd = self.limits.tokens, self.limits.usd
        return (tokens is None or self.tokens + self._reserved_tokens < tokens) and (
            usd is None or self.usd + self._reserved_usd < usd
        )

    def reserve(self, wanted: Reservation) -> None:
        self.requests += 1
        self._reserved_tokens += wanted.tokens
        self._reserved_usd += wanted.usd

    def settle(self, wanted: Reservation, tokens: int, usd: float) -> None:
        self._reserved_tokens -= wanted.tokens
        self._reserved_usd -= wanted.usd
        self.tokens += tokens
        self.usd += usd


class RunBudget:
    """The ledger of a run, and the bell that rings whenever a request of any attempt has been settled."""

    def __init__(self, limits: BudgetLimits, started: float) -> None:
        self.ledger = Ledger("run", limits, started)
        self.settled = anyio.Event()

    def ring(self) -> None:
        self.settled.set()
        self.settled = anyio.Event()


class AttemptBudget:
    """The budget of one attempt inside that of the run."""

    def __init__(self, limits: BudgetLimits, run: RunBudget, started: float) -> None:
        self.ledger = Ledger("attempt", limits, started)
        self._run = run

    @property
    def deadline(self) -> float:
        return min(self.ledger.deadline, self._run.ledger.deadline)

    @property
    def counts_money(self) -> bool:
        return self.ledger.limits.usd is not None or self._run.ledger.limits.usd is not None

    def over(self) -> str:
        """Whose time is over, once the deadline has passed."""
        return f"{'attempt' if self.ledger.deadline <= self._run.ledger.deadline else 'run'}.seconds"

    async def admit(self, wanted: Reservation) -> None:
        """Reserve, after waiting for others where that may help. Raises BudgetExhausted."""
        wanted = self.share(wanted)
        ledgers = (self.ledger, self._run.ledger)
        while True:
            now = anyio.current_time()
            for ledger in ledgers:
                if (budget := ledger.used_up(now)) is not None:
                    raise BudgetExhausted(budget)
            if all(ledger.has_room() for ledger in ledgers):
                for ledger in ledgers:
                    ledger.reserve(wanted)
                return
            bell = self._run.settled
            with anyio.CancelScope(deadline=self.deadline):
                await bell.wait()

    def share(self, wanted: Reservation) -> Reservation:
        """No more than the attempt has in all, or one request that asks for much would make other attempts wait."""
        limits = self.ledger.limits
        tokens = wanted.tokens if limits.tokens is None else min(wanted.tokens, limits.tokens)
        return Reservation(tokens, wanted.usd if limits.usd is None else min(wanted.usd, limits.usd))

    def settle(self, wanted: Reservation, tokens: int, usd: float) -> None:
        """Book what a request really used in place of what it had reserved."""
        wanted = self.share(wanted)
        self.ledger.settle(wanted, tokens, usd)
        self._run.ledger.settle(wanted, tokens, usd)
        self._run.ring()
