"""A trajectory (ATIF) as a timeline: who said what, which tools were called, what came back, what it cost.

The document was made of an agent's own words, and in a stranger's run by anybody: whatever in it has another form
than it should is passed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securebench import _json
from securebench.reports._values import listed, mapping, number, text, whole
from securebench.reports.clips import Clip, clip

_SOURCES = frozenset({"system", "user", "agent"})
_SHORT = 200


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that was called. `result` is None where nothing came back."""

    name: str
    arguments: Clip
    result: Clip | None = None

    def as_json(self) -> dict[str, Any]:
        result = None if self.result is None else self.result.as_json()
        return {"name": self.name, "arguments": self.arguments.as_json(), "result": result}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing somebody said, with the tools it called."""

    source: str
    message: Clip
    reasoning: Clip
    calls: tuple[Call, ...]
    tokens: int | None
    cost: float | None
    time: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "message": self.message.as_json(),
            "reasoning": self.reasoning.as_json(),
            "calls": [call.as_json() for call in self.calls],
            "tokens": self.tokens,
            "cost_usd": self.cost,
            "time": self.time,
        }


@dataclass(frozen=True, slots=True)
class Transcript:
    """The first steps of an attempt; `more` there were."""

    agent: str
    model: str | None
    steps: tuple[Step, ...]
    more: int = 0

    def as_json(self) -> dict[str, Any]:
        steps = [step.as_json() for step in self.steps]
        return {"agent": self.agent, "model": self.model, "steps": steps, "more": self.more}


def read_transcript(data: bytes, steps: int, most: int) -> Transcript:
    """Its first `steps` steps with at most `most` characters of each text. Raises ValueError for what is none."""
    document = mapping(_json.loads(data))
    if not isinstance(document.get("steps"), list):
        raise ValueError("not a trajectory")
    agent = mapping(document.get("agent"))
    found = [_step(one, most) for one in document["steps"][:steps] if isinstance(one, Mapping)]
    dropped = whole(mapping(document.get("extra")).get("dropped_steps")) or 0
    return Transcript(
        _name(agent.get("name")) or "agent",
        _name(agent.get("model_name")),
        tuple(found),
        max(0, len(document["steps"]) - steps) + dropped,
    )


def _step(step: Mapping[str, Any], most: int) -> Step:
    source = step.get("source")
    metrics = mapping(step.get("metrics"))
    counted = [whole(metrics.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    known = [number for number in counted if number is not None]
    return Step(
        source if isinstance(source, str) and source in _SOURCES else "agent",
        clip(_said(step.get("message")), most),
        clip(_said(step.get("reasoning_content")), most),
        _calls(step, most),
        sum(known) if known else None,
        number(metrics.get("cost_usd")),
        _name(step.get("timestamp")),
    )


def _calls(step: Mapping[str, Any], most: int) -> tuple[Call, ...]:
    results: dict[str, str] = {}
    for one in listed(mapping(step.get("observation")).get("results")):
        if isinstance(one, Mapping):
            results[str(one.get("source_call_id"))] = _said(one.get("content"))
    calls = [one for one in listed(step.get("tool_calls")) if isinstance(one, Mapping)]
    return tuple(
        Call(
            _name(one.get("function_name")) or "?",
            clip(_arguments(one.get("arguments")), most),
            clip(results[id_], most) if (id_ := str(one.get("tool_call_id"))) in results else None,
        )
        for one in calls
    )


def _arguments(value: Any) -> str:
    """The one text of a call that has only one, as a command; else all of them."""
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only
    return _said(value)


def _said(value: Any) -> str:
    """Text, or the texts of parts; whatever else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in value
    ):
        return "\n".join(part["text"] for part in value)
    return _json.dumps(value)


def _name(value: Any) -> str | None:
    return text(value, _SHORT) or None
