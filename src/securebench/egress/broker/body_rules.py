"""Whether the body of a request may be sent to the provider.

- It is one strict JSON object, of bounded size and depth, and is sent as it was judged: written anew, never as it came.
- Its fields are listed ones; a field with listed values has one of them, a field of options listed keys only.
- It asks for a permitted model.
- Its tools are of listed types: those the agent runs itself. What a provider runs or fetches is not on the list.
- Typed parts of its content are of listed types; nothing in them names a stored file or an address to be fetched.

The one change made to a body: a stream of chat completions is asked to end with its usage, or it could not be metered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from securebench import _json
from securebench.egress.broker.access import ModelAccess
from securebench.egress.broker.admission import check_model
from securebench.egress.broker.metering import BYTES_A_TOKEN
from securebench.egress.broker.refusal import Refused
from securebench.egress.providers.schema import Endpoint, Rules

MAX_BODY = 32 * 1024 * 1024
MAX_PARTS = 500_000  # brackets and commas: a small body must not become a huge value
MAX_DEPTH = 60
DEFAULT_OUTPUT = 16_384  # reserved for a request that does not bound its reply
MOST_OUTPUT = 1_000_000  # more than any model says at once, whatever a request allows itself
MAX_WORD = 200  # of a type: patterns with two stars are slow on long texts
_CHOICES = ("auto", "any", "none", "required", "tool", "function", "custom", "allowed_tools")
_LOWER = re.compile(r"[a-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True)
class AdmittedBody:
    """A body that may be sent, and what has to be known to meter its reply."""

    data: bytes
    model: str
    streamed: bool
    input_tokens: int  # at most, estimated from its size
    output_tokens: int  # at most, as it says itself


def judge_body(access: ModelAccess, endpoint: Endpoint, data: bytes) -> AdmittedBody:
    """Raises Refused."""
    if len(data) > MAX_BODY:
        raise Refused(413, "request_too_large", f"a request may have {MAX_BODY} bytes at most")
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_PARTS:
        raise Refused(413, "request_too_large", f"a request may have {MAX_PARTS} parts at most")
    try:
        body = _json.loads(data)
    except _json.JsonError as error:
        raise Refused(400, "invalid_request_error", f"the body is not strict JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(400, "invalid_request_error", "the body must be a JSON object")
    return judge_value(access, endpoint, body, len(data))


def judge_value(access: ModelAccess, endpoint: Endpoint, body: dict[str, Any], size: int | None = None) -> AdmittedBody:
    """The same for a body of this process. Raises Refused."""
    judge = _Judge(access, access.provider.bodies[endpoint.body or ""])
    judge.fields(body)
    model = body.get("model")
    if not isinstance(model, str):
        raise Refused(400, "invalid_request_error", "the field model must be text")
    check_model(access, model)
    judge.tools(body.get("tools"))
    judge.choice(body.get("tool_choice"))
    for name in judge.rules.content:
        judge.content(body.get(name), name, 0)
    streamed = body.get("stream") is True
    if streamed and judge.rules.usage_option:
        body = _asking_for_usage(body)
    try:
        written = _json.dumps(body).encode()
    except (RecursionError, ValueError, TypeError):
        raise Refused(400, "invalid_request_error", "the body is nested too deeply or not plain data") from None
    return AdmittedBody(written, model, streamed, (size or len(written)) // BYTES_A_TOKEN, _most_output(judge, body))


def _asking_for_usage(body: dict[str, Any]) -> dict[str, Any]:
    options = body.get("stream_options")
    options = options if isinstance(options, dict) else {}
    return body | {"stream_options": options | {"include_usage": True}}


def _most_output(judge: _Judge, body: dict[str, Any]) -> int:
    said = [body.get(name) for name in judge.rules.max_output]
    counts = [count for count in said if isinstance(count, int) and not isinstance(count, bool) and count > 0]
    replies = body.get("n") if isinstance(body.get("n"), int) else 1
    return min([*counts, MOST_OUTPUT] if counts else [DEFAULT_OUTPUT]) * max(1, min(replies or 1, 1000))


class _Judge:
    """The rules of an endpoint together with the features the operator allows."""

    def __init__(self, access: ModelAccess, rules: Rules) -> None:
        self.access = access
        self.rules = rules
        features = [access.provider.features[name] for name in sorted(access.features)]
        self.allowed_fields = {*rules.fields, *(name for feature in features for name in feature.fields)}
        self.more_values = [feature.values for feature in features]
        self.tool_types = (*rules.tools, *(name for feature in features for name in feature.tools))
        self.part_types = (*rules.types, *(name for feature in features for name in feature.types))
        self.free_keys = tuple(name for feature in features for name in feature.keys)

    def fields(self, body: dict[str, Any]) -> None:
        for name, value in body.items():
            if name not in self.allowed_fields:
                raise self._refused(f"the field {name[:80]!r}", fields=name)
            self._options(name, value)
            allowed = self.rules.values.get(name)
            if allowed is None:
                continue
            more = [choice for values in self.more_values for choice in values.get(name, ())]
            if not any(type(value) is type(choice) and value == choice for choice in (*allowed, *more)):
                raise self._refused(f"this value of the field {name!r}", value=(name, value))

    def _options(self, name: str, value: Any) -> None:
        listed = self.rules.options.get(name)
        if listed is None or value is None:
            return
        if not isinstance(value, dict):
            raise Refused(400, "invalid_request_error", f"the field {name} must be an object")
        for key, word in value.items():
            if key not in listed and (key in self.rules.fields or key not in self.allowed_fields):
                raise self._refused(f"{key[:80]!r} in the field {name!r}", fields=key)
            if isinstance(word, list | dict):
                raise Refused(400, "invalid_request_error", f"{key[:80]!r} in the field {name} must be a plain value")

    def tools(self, tools: Any, depth: int = 0) -> None:
        if tools is None:
            return
        if not isinstance(tools, list) or depth > 4:
            raise Refused(400, "invalid_request_error", "tools must be a list of objects")
        for tool in tools:
            if not isinstance(tool, dict):
                raise Refused(400, "invalid_request_error", "tools must be a list of objects")
            self._lower_keys(tool, "tools")
            kind = tool.get("type")
            if kind is None and self.rules.untyped_tools:
                kind = "custom"
            if not isinstance(kind, str) or not _listed(kind, self.tool_types):
                raise self._refused(f"a tool of type {str(kind)[:80]!r}", tools=str(kind))
            for key in self.rules.refused_keys:
                if key in tool and not _listed(key, self.free_keys):
                    raise self._refused(f"{key!r} in a tool", keys=key)
            if "tools" in tool:
                self.tools(tool["tools"], depth + 1)

    def choice(self, choice: Any) -> None:
        if not isinstance(choice, dict):
            return
        self._lower_keys(choice, "tool_choice")
        kind = choice.get("type")
        if not isinstance(kind, str) or not _listed(kind, (*_CHOICES, *self.tool_types)):
            raise self._refused(f"a choice of the tool {str(kind)[:80]!r}", tools=str(kind))
        named = choice.get("allowed_tools", choice)
        for tool in named.get("tools") or () if isinstance(named, dict) else ():
            self.choice(tool)

    def content(self, value: Any, place: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Refused(400, "invalid_request_error", "the content is nested too deeply")
        if isinstance(value, list):
            for item in value:
                if isinstance(item, dict) and "type" not in item and "role" not in item:
                    raise Refused(400, "invalid_request_error", f"a part of {place} has neither a type nor a role")
                self.content(item, place, depth + 1)
        elif isinstance(value, dict):
            self._part(value, place, depth)

    def _part(self, part: dict[str, Any], place: str, depth: int) -> None:
        self._lower_keys(part, place)
        kind = part.get("type", "")
        if "type" in part and not (isinstance(kind, str) and _listed(kind, self.part_types)):
            raise self._refused(f"content of type {str(kind)[:80]!r}", types=str(kind))
        for key, value in part.items():
            if key in self.rules.opaque or f"{kind}.{key}" in self.rules.opaque:
                continue
            if value is not None and key in self.rules.refused_keys and not _listed(key, self.free_keys):
                raise self._refused(f"{key!r}, which names something stored at the provider", keys=key)
            if self._is_address(key, value) and not _listed(key, self.free_keys):
                raise self._refused(f"an address in {key!r} for the provider to fetch", keys=key)
            if isinstance(value, list | dict):
                self.content(value, place, depth + 1)

    def _is_address(self, key: str, value: Any) -> bool:
        """Whether a value is, or may be taken for, something to be fetched."""
        if value is None or (isinstance(value, str) and value.startswith("data:")):
            return False
        if _listed(key, self.rules.inline_only):
            return not isinstance(value, dict)  # whose own keys are looked at
        return key in self.rules.encoded_only and not (isinstance(value, str) and ":" not in value[:100])

    def _lower_keys(self, part: dict[str, Any], place: str) -> None:
        """Some servers match keys without regard to case, so another spelling could say what was not looked at."""
        for key in part:
            if not _LOWER.fullmatch(key):
                raise Refused(400, "invalid_request_error", f"the key {key[:80]!r} in {place} is not a known one")

    def _refused(self, what: str, **wanted: Any) -> Refused:
        remedy = _remedy(self.access, wanted)
        return Refused(400, "not_allowed_in_this_run", f"{what} is not allowed in this run{remedy}")


def _remedy(access: ModelAccess, wanted: dict[str, Any]) -> str:
    (section, what), *_ = wanted.items()
    for name, feature in access.provider.features.items():
        if section == "value":
            if what[1] in feature.values.get(what[0], ()):
                return f"; the operator can allow the feature {name}"
        elif _listed(what, getattr(feature, section)):
            return f"; the operator can allow the feature {name}"
    return ""


def _listed(word: str, patterns: Iterable[str]) -> bool:
    return len(word) <= MAX_WORD and any(
        word == pattern or ("*" in pattern and _pattern(pattern).fullmatch(word)) for pattern in patterns
    )


@lru_cache(maxsize=1000)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile("[a-z0-9_.-]*".join(re.escape(part) for part in text.split("*")))
