"""What an agent did, step by step, in the Agent Trajectory Interchange Format (ATIF) that Harbor uses.

Made from an agent's own words, so it is a story and not evidence of anything; bounded, and scrubbed of secrets. What
ATIF has no place for lies under `extra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from securebench import _json

SCHEMA_VERSION = "ATIF-v1.4"
MAX_STEPS = 5000
MAX_TEXT = 64 * 1024
MAX_TOTAL = 16 * 1024 * 1024
MAX_DEPTH = 32
_CUT = " […cut]"

Source = Literal["system", "user", "agent"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool the agent called. `result` is None as long as nothing came back."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    result: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"tool_call_id": self.id, "function_name": self.name, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class Metrics:
    """Tokens and cost of one step, where the agent or the broker knows them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None

    def as_json(self, prefix: str = "") -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return {f"{prefix}{name}": value for name, value in values.items() if value is not None}


@dataclass(slots=True)
class Step:
    """One thing said by somebody, with the tools it called."""

    source: Source
    message: str
    reasoning: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    metrics: Metrics | None = None
    timestamp: str | None = None

    def as_json(self, number: int) -> dict[str, Any]:
        shown: dict[str, Any] = {"step_id": number, "source": self.source, "message": self.message}
        if self.timestamp is not None:
            shown["timestamp"] = self.timestamp
        if self.reasoning is not None:
            shown["reasoning_content"] = self.reasoning
        if self.tool_calls:
            shown["tool_calls"] = [call.as_json() for call in self.tool_calls]
            results = [
                {"source_call_id": call.id, "content": call.result}
                for call in self.tool_calls
                if call.result is not None
            ]
            if results:
                shown["observation"] = {"results": results}
        if self.metrics is not None and (metrics := self.metrics.as_json()):
            shown["metrics"] = metrics
        return shown


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps of one attempt, and what they cost in all."""

    session_id: str
    agent: str
    version: str
    model: str | None
    steps: Sequence[Step]
    total: Metrics = field(default_factory=Metrics)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def encode(self, secrets: Iterable[str] = ()) -> bytes:
        """One JSON document, within the bounds, in which none of `secrets` occurs."""
        scrub = _Scrubber(tuple(secret for secret in secrets if secret))
        kept: list[Any] = []
        total = dropped = 0
        for number, step in enumerate(self.steps, 1):
            shown = scrub.value(step.as_json(number))
            size = len(_json.dumps(shown))
            if len(kept) >= MAX_STEPS or total + size > MAX_TOTAL:
                dropped += 1
                continue
            total += size
            kept.append(shown)
        agent = {"name": self.agent, "version": self.version}
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "session_id": self.session_id,
            "agent": agent if self.model is None else {**agent, "model_name": self.model},
            "steps": kept,
            "final_metrics": {**self.total.as_json("total_"), "total_steps": len(self.steps)},
            "extra": scrub.value({**self.extra, **({"dropped_steps": dropped} if dropped else {})}),
        }
        return (_json.dumps(document) + "\n").encode()


@dataclass(frozen=True, slots=True)
class _Scrubber:
    secrets: tuple[str, ...]

    def value(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if depth > MAX_DEPTH:
            return _CUT
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return value

    def text(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        text = text.encode("utf-8", "replace").decode()  # no lone surrogates, which JSON readers refuse
        return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - len(_CUT)] + _CUT
