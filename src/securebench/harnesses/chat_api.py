"""One question to a model, in the words of each API, and what its answer says. Pure.

A reply is read for its text alone: parts that are not text (reasoning, tool calls, images) are not an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from securebench import _json
from securebench.egress.providers.schema import Endpoint, Provider
from securebench.errors import ConfigError

DEFAULT_MAX_TOKENS = 8192
"""For APIs that ask for a limit, where the tester file names none."""

_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    model: str
    prompt: str
    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said. `refusal` is its word for not answering, where the API has a place for that."""

    text: str
    model: str | None
    finish_reason: str | None
    refusal: str | None = None


class NotAnAnswer(ValueError):
    """A body that is not in the shape of the API."""


def endpoint_for(provider: Provider) -> Endpoint:
    """Where questions go. Raises ConfigError for a provider that has no place for them."""
    for kind in _WORDS:
        for endpoint in provider.endpoints:
            if endpoint.kind == kind:
                return endpoint
    raise ConfigError(f"provider {provider.name} has no endpoint for chat; one of {', '.join(_WORDS)} is needed")


def body_for(question: Question, endpoint: Endpoint, provider: Provider) -> dict[str, Any]:
    """The request's body."""
    limits = provider.bodies[endpoint.body or ""].max_output
    body = {"model": question.model, **_WORDS[endpoint.kind].ask(question)}
    if question.temperature is not None:
        body["temperature"] = question.temperature
    if question.max_tokens is not None or endpoint.kind == "messages":
        body[limits[0] if limits else "max_tokens"] = question.max_tokens or DEFAULT_MAX_TOKENS
    return body


def read_answer(data: bytes, endpoint: Endpoint) -> Answer:
    """What a reply of status 200 says. Raises NotAnAnswer."""
    try:
        body = _json.loads(data)
    except _json.JsonError as error:
        raise NotAnAnswer(str(error)) from None
    found = _WORDS[endpoint.kind].read(body) if isinstance(body, dict) else None
    if found is None:
        raise NotAnAnswer(f"not in the shape of the {endpoint.kind} API")
    return found


def error_words(data: bytes) -> tuple[str, str]:
    """The code and the message of an error reply, as far as it has them."""
    try:
        body = _json.loads(data)
    except _json.JsonError:
        body = None
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, str):
        return "", error
    if not isinstance(error, dict):
        return "", ""
    code, message = error.get("code") or error.get("type"), error.get("message")
    return (code if isinstance(code, str) else ""), (message if isinstance(message, str) else "")


@dataclass(frozen=True, slots=True)
class _Words:
    ask: Callable[[Question], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Answer | None]


def _ask_chat(question: Question) -> dict[str, Any]:
    system = [] if question.system is None else [{"role": "system", "content": question.system}]
    return {"messages": [*system, {"role": "user", "content": question.prompt}]}


def _ask_messages(question: Question) -> dict[str, Any]:
    system = {} if question.system is None else {"system": question.system}
    return {**system, "messages": [{"role": "user", "content": question.prompt}]}


def _ask_responses(question: Question) -> dict[str, Any]:
    system = {} if question.system is None else {"instructions": question.system}
    return {**system, "input": [{"role": "user", "content": question.prompt}], "store": False}


def _read_chat(body: Mapping[str, Any]) -> Answer | None:
    match body:
        case {"choices": [{"message": {**message}} as choice, *_]}:
            content, refusal = message.get("content"), message.get("refusal")
            return Answer(
                content if isinstance(content, str) else _texts(content, {"text"}),
                _name(body.get("model")),
                _name(choice.get("finish_reason")),
                refusal if isinstance(refusal, str) and refusal else None,
            )
    return None


def _read_messages(body: Mapping[str, Any]) -> Answer | None:
    match body:
        case {"type": "message", "content": [*parts]}:
            return Answer(_texts(parts, {"text"}), _name(body.get("model")), _name(body.get("stop_reason")))
    return None


def _read_responses(body: Mapping[str, Any]) -> Answer | None:
    match body:
        case {"output": [*items], "status": str(status)}:
            parts = [
                part
                for item in items
                if isinstance(item, dict) and item.get("type") == "message" and isinstance(item.get("content"), list)
                for part in item["content"]
            ]
            refusal = _texts(parts, {"refusal"}, "refusal") or None
            details = body.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            return Answer(
                _texts(parts, {"output_text"}), _name(body.get("model")), _name(reason) or _name(status), refusal
            )
    return None


def _texts(parts: Any, kinds: set[str], field: str = "text") -> str:
    """The text parts of a content, one after the other."""
    return "".join(
        part[field]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and part.get("type") in kinds and isinstance(part.get(field), str)
    )


def _name(value: Any) -> str | None:
    return value[:_MAX_NAME] if isinstance(value, str) else None


_WORDS: Mapping[str, _Words] = {
    "chat": _Words(_ask_chat, _read_chat),
    "messages": _Words(_ask_messages, _read_messages),
    "responses": _Words(_ask_responses, _read_responses),
}
