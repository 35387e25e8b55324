"""How time, tokens and cost are spread over attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from securebench.reports.rows import Row


@dataclass(frozen=True, slots=True)
class Spread:
    """One thing that attempts used. `values` are in order; `unknown` attempts do not say."""

    name: str  # time, tokens, cost
    unit: str
    values: tuple[float, ...]
    unknown: int

    @property
    def total(self) -> float:
        return sum(self.values)

    def quantile(self, share: float) -> float:
        """The value below which that share lies, between the two nearest. There must be values."""
        place = share * (len(self.values) - 1)
        below = int(place)
        above = min(below + 1, len(self.values) - 1)
        return self.values[below] + (self.values[above] - self.values[below]) * (place - below)

    def as_json(self) -> dict[str, Any]:
        shares = {"minimum": 0.0, "p10": 0.1, "median": 0.5, "p90": 0.9, "maximum": 1.0}
        return {
            "name": self.name,
            "unit": self.unit,
            "attempts": len(self.values),
            "unknown": self.unknown,
            "total": self.total,
            **{name: self.quantile(share) for name, share in shares.items()},
        }


def spreads(rows: Iterable[Row]) -> tuple[Spread, ...]:
    """Of what any attempt tells."""
    rows = list(rows)
    made = (
        _spread("time", "s", rows, seconds_of),
        _spread("tokens", "tokens", rows, tokens_of),
        _spread("cost", "USD", rows, lambda row: row.cost_usd),
    )
    return tuple(one for one in made if one.values)


def seconds_of(row: Row) -> float | None:
    """Producing and verifying together."""
    known = [value for value in (row.produce_seconds, row.verify_seconds) if value is not None]
    return sum(known) if known else None


def tokens_of(row: Row) -> float | None:
    """In and out; those read from a cache are among those in."""
    known = [value for value in (row.input_tokens, row.output_tokens) if value is not None]
    return float(sum(known)) if known else None


def _spread(name: str, unit: str, rows: list[Row], value: Callable[[Row], float | None]) -> Spread:
    known = sorted(found for row in rows if (found := value(row)) is not None)
    return Spread(name, unit, tuple(known), len(rows) - len(known))
