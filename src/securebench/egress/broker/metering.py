"""Tokens and cost, read from the replies as they pass.

A stream is looked at line by line, and only lines that name usage are parsed: the work is linear in the bytes and
small. Text of a model cannot stand for usage: it is inside a JSON string, and only objects at listed places count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from securebench import _json
from securebench.egress.providers.schema import Price, UsageFields

MAX_LINE = 16 * 1024 * 1024  # of an event or a JSON reply; beyond it, usage is estimated
MAX_COUNT = 10**12  # a provider that claims more counts something else
BYTES_A_TOKEN = 3  # fewer than any tokenizer needs for text, so that an estimate errs to the high side
_COUNTS = ("input", "cached_input", "cache_write", "cache_write_long", "output")
_MARK = b'"usage"'


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used. Input is all input, cached or not; cost is None where a price is not known."""

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        unknown = self.cost_usd is None or other.cost_usd is None
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
            self.estimated or other.estimated,
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            "estimated": self.estimated,
        }


class Meter:
    """Reads one reply as it passes by."""

    def __init__(self, fields: UsageFields, *, streamed: bool) -> None:
        self._fields = fields
        self._streamed = streamed
        self._line = bytearray()  # the part of a line, or of a JSON reply, that came so far
        self._too_long = False
        self._counts: dict[str, int] = {}
        self._final = False
        self.bytes = 0

    def feed(self, chunk: bytes) -> None:
        self.bytes += len(chunk)
        end = chunk.rfind(b"\n") + 1 if self._streamed else 0
        if end:
            self._finish_lines(chunk[:end] if end < len(chunk) else chunk)
            chunk = chunk[end:]
        if len(self._line) + len(chunk) > MAX_LINE:
            self._line.clear()
            self._too_long = True
        if not self._too_long:
            self._line += chunk

    def _finish_lines(self, complete: bytes) -> None:
        if self._too_long:  # its end is here: forget it, take up what follows
            complete = complete[complete.find(b"\n") :]
            self._too_long = False
        data = bytes(self._line) + complete if self._line else complete
        self._line.clear()
        place = data.find(_MARK)
        while place >= 0:
            begin, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
            end = len(data) if end < 0 else end
            line = data[begin:end]
            if line.startswith(b"data:"):
                self._read(line[5:].strip())
            place = data.find(_MARK, end)

    def _read(self, text: bytes) -> None:
        try:
            value = _json.loads(text)
        except _json.JsonError:
            return
        for place in (*self._fields.at, *self._fields.at_start):
            found = _at(value, place)
            if isinstance(found, dict):
                self._final = self._final or place in self._fields.at
                for name in _COUNTS:
                    count = _first_count(found, getattr(self._fields, name))
                    # Streams report the same counts again as they grow; the largest is the last.
                    self._counts[name] = max(self._counts.get(name, 0), count)

    def finish(self, request_bytes: int, price: Price | None, least_output: int = 0) -> Usage:
        """What the reply reported, or an estimate where it did not, or was cut before it could.

        `least_output` tokens are taken to be written where nothing else is known."""
        if self._streamed:
            self._finish_lines(b"\n")
        elif not self._too_long and self._line:
            self._read(bytes(self._line))
        self._line.clear()
        if self._final:
            return _reported(self._counts, price, input_is_total=self._fields.input_is_total)
        return _estimated(request_bytes, self.bytes, self._counts, price, least_output)


def _at(value: Any, place: str) -> Any:
    for part in place.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _first_count(found: dict[str, Any], places: tuple[str, ...]) -> int:
    for place in places:
        count = _at(found, place)
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return min(count, MAX_COUNT)
    return 0


def _reported(counts: dict[str, int], price: Price | None, *, input_is_total: bool) -> Usage:
    cached, written = counts.get("cached_input", 0), counts.get("cache_write", 0)
    long = min(counts.get("cache_write_long", 0), written)
    total = counts.get("input", 0) if input_is_total else counts.get("input", 0) + cached + written
    total = max(total, cached + written)
    output = counts.get("output", 0)
    cost = None if price is None else _cost(price, total - cached - written, cached, written - long, long, output)
    return Usage(1, total, cached, output, cost)


def _estimated(
    request_bytes: int, reply_bytes: int, known: dict[str, int], price: Price | None, least_output: int
) -> Usage:
    """Errs to the high side."""
    said = known.get("input", 0) + known.get("cached_input", 0) + known.get("cache_write", 0)
    read = said or -(-request_bytes // BYTES_A_TOKEN)
    output = max(known.get("output", 0), -(-reply_bytes // BYTES_A_TOKEN), least_output)
    cost = None if price is None else _cost(price, read, 0, 0, 0, output)
    return Usage(1, read, 0, output, cost, estimated=True)


def _cost(price: Price, fresh: int, cached: int, written: int, long: int, output: int) -> float:
    def rate(value: float | None) -> float:
        return price.input if value is None else value

    total = fresh * price.input + cached * rate(price.cached_input) + output * price.output
    return (total + written * rate(price.cache_write) + long * rate(price.cache_write_long)) / 1_000_000
