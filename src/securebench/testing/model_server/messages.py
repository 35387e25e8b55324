"""Anthropic messages, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from securebench import _json
from securebench.testing.model_server.reply import Event, Reply, pieces
from securebench.testing.model_server.turns import Turn


def _usage(turn: Turn) -> dict[str, int]:
    given, cached, made = turn.usage or (0, 0, 0)
    return {
        "input_tokens": given - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": made,
    }


def _stop_reason(reply: Reply) -> str:
    named = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}.get(reply.turn.finish or "")
    return named or ("tool_use" if reply.turn.tool_calls else "end_turn")


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.turn.text}] if reply.turn.text else []
    return blocks + [
        {"type": "tool_use", "id": identity, "name": call.name, "input": dict(call.arguments)}
        for identity, call in reply.calls
    ]


def body(reply: Reply) -> dict[str, Any]:
    body = {
        "id": f"msg_turn{reply.asked.turn}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": _blocks(reply),
        "stop_reason": _stop_reason(reply),
        "stop_sequence": None,
    }
    return body if reply.turn.usage is None else body | {"usage": _usage(reply.turn)}


def events(reply: Reply) -> Iterator[Event]:
    whole, usage = body(reply), _usage(reply.turn)
    begun = whole | {"content": [], "stop_reason": None}
    if reply.turn.usage is not None:
        begun["usage"] = usage | {"output_tokens": 1}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        yield from _block_events(index, block, reply.turn.chunks)
    ended: Event = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}}
    if reply.turn.usage is not None:
        ended["usage"] = {"output_tokens": usage["output_tokens"]}
    yield ended
    yield {"type": "message_stop"}


def _block_events(index: int, block: dict[str, Any], chunks: int) -> Iterator[Event]:
    is_text = block["type"] == "text"
    nothing: Event = {"text": ""} if is_text else {"input": {}}
    empty = block | nothing
    whole = block["text"] if is_text else _json.dumps(block["input"])
    kind, field = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for piece in pieces(whole, chunks):
        yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: piece}}
    yield {"type": "content_block_stop", "index": index}
