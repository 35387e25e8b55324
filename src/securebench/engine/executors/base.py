"""The executor protocol: an order to carry out one attempt goes in, the body of its record comes back.

Both are plain bytes once they leave the process, so an executor may be another process or another machine. Whoever
carries an order out loads the pack itself and builds the record, scrubbing included; whoever gave it only chains,
writes and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from securebench import _json
from securebench.engine.interruption import Interruption
from securebench.errors import IntegrityError, SecureBenchError
from securebench.progress import Event, ProgressEvent


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt to carry out. `sample` is a candidate that was produced elsewhere, as one line of JSON that nobody
    has believed yet; `line` says where it stood in its file."""

    row: int  # of the pack
    attempt: int
    lost: int = 0  # starts of its agent that a killed engine left without a record
    sample: bytes | None = None
    line: int | None = None
    repeats: tuple[Mapping[str, Any], ...] = ()  # faults of the host until now, as the record states them
    fault: str | None = None  # the last one: nothing is tried any more, only recorded

    def encode(self) -> bytes:
        """A line of JSON, and behind it the sample as it is."""
        head: dict[str, Any] = {"row": self.row, "attempt": self.attempt, "lost": self.lost, "line": self.line}
        if self.repeats or self.fault is not None:
            head |= {"repeats": list(self.repeats), "fault": self.fault}
        text = _json.dumps(head).encode()
        return text if self.sample is None else b"\n".join((text, self.sample))

    @classmethod
    def decode(cls, data: bytes) -> Order:
        """What `encode` made. Raises IntegrityError for anything else."""
        text, separator, sample = data.partition(b"\n")
        try:
            head: Any = _json.loads(text)
            repeats = tuple(head.pop("repeats", ()))
            return cls(**head, repeats=repeats, sample=sample if separator else None)
        except (_json.JsonError, TypeError, AttributeError) as error:
            raise IntegrityError(f"not an order of ours: {error}") from error


@dataclass(frozen=True, slots=True)
class Done:
    """The record of an attempt: the body of its line, which only lacks its place in the chain, and what it says."""

    body: bytes
    record: Mapping[str, Any]

    @classmethod
    def decode(cls, body: bytes) -> Done:
        """From the body alone. Raises IntegrityError."""
        try:
            record = _json.loads(body + b"}")
        except _json.JsonError as error:
            raise IntegrityError(f"not the body of a record: {error}") from error
        if not isinstance(record, dict):
            raise IntegrityError("not the body of a record")
        return cls(body, record)

    def event(self) -> ProgressEvent:
        """That it is done, for displays and the journal."""
        record = self.record
        timings, used = record["timings"], record["usage"].get("models", {})
        data = {
            "status": record["verification_status"],
            "failure_reason": record["failure_reason"],
            "message": record["failure_message"][:500],  # scrubbed, as everything in it
            "seconds": round(timings.get("produce_seconds", 0.0) + timings.get("verify_seconds", 0.0), 3),
            "tokens": int(used.get("input_tokens", 0)) + int(used.get("output_tokens", 0)),
            "cost_usd": used.get("cost_usd"),
        }
        return ProgressEvent(Event.TASK_DONE, record["task_id"], record["attempt"], data)


class Executor(Protocol):
    """Carries orders out, side by side."""

    lanes: int  # orders given at a time that keep it busy; more may be given, and wait
    places: int  # orders that are judged at a time
    running: int  # orders that are being carried out now
    restarts: int  # of processes that had to be replaced

    @property
    def fault(self) -> SecureBenchError | None:
        """What keeps every order from being carried out, for good."""
        ...

    async def carry_out(self, order: Order, interruption: Interruption) -> Done | None:
        """The record of one attempt, whatever came of it; None where the interruption ended its production.
        Cancelling it ends its work. Raises InfrastructureError, IntegrityError or ConfigError for what ends a run."""
        ...
