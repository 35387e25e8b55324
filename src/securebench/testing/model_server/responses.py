"""OpenAI responses, whole and streamed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from securebench import _json
from securebench.testing.model_server.reply import Event, Reply, pieces
from securebench.testing.model_server.turns import Turn


def body(reply: Reply) -> dict[str, Any]:
    cut = reply.turn.finish == "length"
    return {
        "id": f"resp_turn{reply.asked.turn}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": reply.model,
        "output": _items(reply),
        "usage": _usage(reply.turn),
    }


def _usage(turn: Turn) -> dict[str, Any] | None:
    if turn.usage is None:
        return None
    given, cached, made = turn.usage
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }


def _items(reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.turn.text:
        part = (
            {"type": "refusal", "refusal": reply.turn.text}
            if reply.turn.finish == "refusal"
            else {"type": "output_text", "text": reply.turn.text, "annotations": []}
        )
        identity = f"msg_turn{reply.asked.turn}"
        items.append({"type": "message", "id": identity, "role": "assistant", "status": "completed", "content": [part]})
    for number, (identity, call) in enumerate(reply.calls):
        item = {"id": f"fc_turn{reply.asked.turn}_{number}", "status": "completed", "call_id": identity}
        arguments = _json.dumps(dict(call.arguments))
        if reply.asked.tools.get(call.name, {}).get("type") == "custom":
            items.append(
                item | {"type": "custom_tool_call", "name": call.name, "input": call.arguments.get("input", "")}
            )
        else:
            items.append(item | {"type": "function_call", "name": call.name, "arguments": arguments})
    return items


def events(reply: Reply) -> Iterator[Event]:
    whole = body(reply)
    begun = whole | {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    number = itertools.count()

    def event(kind: str, **fields: Any) -> Event:
        return {"type": f"response.{kind}", "sequence_number": next(number), **fields}

    yield event("created", response=begun)
    yield event("in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            empty = item | {"status": "in_progress", "content": []}
            yield event("output_item.added", output_index=index, item=empty)
            yield from _text_events(event, where | {"content_index": 0}, item["content"][0], reply.turn.chunks)
        else:
            field = "arguments" if item["type"] == "function_call" else "input"
            kind = "function_call_arguments" if field == "arguments" else "custom_tool_call_input"
            yield event("output_item.added", output_index=index, item=item | {"status": "in_progress", field: ""})
            for piece in pieces(item[field], reply.turn.chunks):
                yield event(f"{kind}.delta", **where, delta=piece)
            yield event(f"{kind}.done", **where, **{field: item[field]})
        yield event("output_item.done", output_index=index, item=item)
    yield event("incomplete" if whole["status"] == "incomplete" else "completed", response=whole)


def _text_events(event: Any, where: dict[str, Any], part: dict[str, Any], chunks: int) -> Iterator[Event]:
    field = "refusal" if part["type"] == "refusal" else "text"
    kind = "refusal" if field == "refusal" else "output_text"
    yield event("content_part.added", **where, part=part | {field: ""})
    for piece in pieces(part[field], chunks):
        yield event(f"{kind}.delta", **where, delta=piece)
    yield event(f"{kind}.done", **where, **{field: part[field]})
    yield event("content_part.done", **where, part=part)
