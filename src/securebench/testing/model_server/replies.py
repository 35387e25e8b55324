"""A turn as what goes over the wire: a whole reply, or server-sent events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from securebench import _json
from securebench.testing.model_server import chat, messages, responses
from securebench.testing.model_server.asked import Api
from securebench.testing.model_server.reply import Event, Reply

WORDS: Mapping[Api, ModuleType] = {Api.RESPONSES: responses, Api.CHAT: chat, Api.MESSAGES: messages}


def whole(reply: Reply) -> dict[str, Any]:
    """The reply to a request that does not stream."""
    body: dict[str, Any] = WORDS[reply.asked.api].body(reply)
    return body


def streamed(reply: Reply) -> Iterator[bytes]:
    """The same as server-sent events."""
    events: Iterator[Event] = WORDS[reply.asked.api].events(reply)
    for event in events:
        if event is chat.DONE:
            yield b"data: [DONE]\n\n"
        else:
            name = f"event: {event['type']}\n" if "type" in event else ""
            yield f"{name}data: {_json.dumps(event)}\n\n".encode()
