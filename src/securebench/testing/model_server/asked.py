"""A request as the scripted model sees it: which API, which tools, how many turns the model had already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MARK = re.compile(r"_turn(\d+)_\d+$")
"""In the ids of calls: the turn that made the call, so that a client may reorder what it sends back."""


class Api(StrEnum):
    RESPONSES = "responses"
    CHAT = "chat"
    MESSAGES = "messages"


PATHS: Mapping[str, Api] = {
    "/v1/responses": Api.RESPONSES,
    "/v1/chat/completions": Api.CHAT,
    "/v1/messages": Api.MESSAGES,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a turn of the model."""

    api: Api
    body: Mapping[str, Any]
    turn: int  # how many turns of the model the conversation holds
    tools: Mapping[str, Mapping[str, Any]]  # by name, as they came
    text: str  # every string of the request that stands in the conversation

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True


def read(api: Api, body: Mapping[str, Any]) -> Asked:
    """What a request asks. Never fails on one that is odd: clients are what is tested, not this."""
    conversation = [body.get("instructions"), body.get("system"), body.get("input"), body.get("messages")]
    return Asked(
        api=api,
        body=body,
        turn=_turns(_items(api, body)),
        tools=_tools(body),
        text="\n".join(_strings(conversation)),
    )


def _items(api: Api, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = body.get("input" if api is Api.RESPONSES else "messages")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _turns(items: Iterable[Mapping[str, Any]]) -> int:
    """Runs of what the model said; runs whose calls are of one turn count once."""
    marked: set[str] = set()
    plain = 0
    run: list[Mapping[str, Any]] = []
    for item in [*items, {"role": "user"}]:
        if _is_of_model(item):
            run.append(item)
        elif run:
            marks = {found[1] for said in run for text in _ids(said) if (found := MARK.search(text))}
            plain += not marks
            marked |= marks
            run = []
    return len(marked) + plain


def _is_of_model(item: Mapping[str, Any]) -> bool:
    kind = str(item.get("type", "message"))
    return item.get("role") == "assistant" or (kind != "message" and kind.endswith(("_call", "reasoning")))


def _ids(item: Mapping[str, Any]) -> Iterator[str]:
    parts = [item]
    for name in ("content", "tool_calls"):
        inner = item.get(name)
        parts += [part for part in inner if isinstance(part, dict)] if isinstance(inner, list) else []
    for part in parts:
        yield from (str(part[name]) for name in ("call_id", "id") if part.get(name) is not None)


def _tools(body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    tools = body.get("tools")
    found = {}
    for tool in tools if isinstance(tools, list) else []:
        name = tool.get("name") or tool.get("function", {}).get("name") or tool.get("type")
        found[str(name)] = tool
    return found


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
