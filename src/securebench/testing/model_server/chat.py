"""OpenAI chat completions, whole and in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from securebench import _json
from securebench.testing.model_server.reply import Event, Reply, pieces
from securebench.testing.model_server.turns import Turn

DONE: Event = {}
"""The event that a stream ends with, which is no JSON."""


def _finish(reply: Reply) -> str:
    if reply.turn.finish in {"length", "content_filter"}:
        return str(reply.turn.finish)
    return "tool_calls" if reply.turn.tool_calls else "stop"


def _usage(turn: Turn) -> dict[str, Any] | None:
    if turn.usage is None:
        return None
    given, cached, made = turn.usage
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": identity,
            "type": "function",
            "function": {"name": call.name, "arguments": _json.dumps(dict(call.arguments))},
        }
        for identity, call in reply.calls
    ]


def body(reply: Reply) -> dict[str, Any]:
    refused = reply.turn.finish == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused or not reply.turn.text else reply.turn.text,
        "refusal": reply.turn.text if refused else None,
    }
    if reply.turn.tool_calls:
        message["tool_calls"] = _calls(reply)
    body = {
        "id": f"chatcmpl-turn{reply.asked.turn}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}],
    }
    usage = _usage(reply.turn)
    return body if usage is None else body | {"usage": usage}


def events(reply: Reply) -> Iterator[Event]:
    options = reply.asked.body.get("stream_options")
    with_usage = isinstance(options, dict) and options.get("include_usage") is True

    def chunk(choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> Event:
        head = {"id": f"chatcmpl-turn{reply.asked.turn}", "object": "chat.completion.chunk", "created": 1_700_000_000}
        return head | {"model": reply.model, "choices": choices} | ({"usage": usage} if with_usage else {})

    def delta(fields: dict[str, Any], finish: str | None = None) -> Event:
        return chunk([{"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}])

    yield delta({"role": "assistant", "content": ""})
    field = "refusal" if reply.turn.finish == "refusal" else "content"
    for piece in pieces(reply.turn.text, reply.turn.chunks):
        yield delta({field: piece})
    for index, call in enumerate(_calls(reply)):
        arguments = call["function"]["arguments"]
        empty = call | {"index": index, "function": call["function"] | {"arguments": ""}}
        yield delta({"tool_calls": [empty]})
        for piece in pieces(arguments, reply.turn.chunks):
            yield delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield delta({}, _finish(reply))
    if with_usage and reply.turn.usage is not None:
        yield chunk([], _usage(reply.turn))
    yield DONE
