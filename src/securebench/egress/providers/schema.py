"""What a provider file may say. Everything an agent may ask for is listed; what is not listed is refused."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from securebench._schema import ClosedModel

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,60}$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{0,200}$")]
Word = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]
UrlPath = Annotated[str, StringConstraints(pattern=r"^(/[a-z0-9_.-]*[a-z0-9_-]|/\{model\})*$")]
Usd = Annotated[float, Field(ge=0, le=1_000_000)]
Scalar = bool | int | str | None

RESERVED_HEADERS = frozenset(
    {"authorization", "connection", "content-encoding", "content-length", "cookie", "host", "set-cookie", "te"}
    | {"proxy-authorization", "trailer", "transfer-encoding", "upgrade", "x-api-key", "accept-encoding", "expect"}
)


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


def _forwardable(name: str) -> str:
    if name in RESERVED_HEADERS:
        raise ValueError(f"the broker sets or drops {name} itself; it cannot be listed")
    return name


Regex = Annotated[str, StringConstraints(max_length=200), AfterValidator(_regex)]
FreeHeader = Annotated[HeaderName, AfterValidator(_forwardable)]


class Key(ClosedModel):
    """How the real key is found and sent."""

    env: EnvName
    header: Literal["authorization", "x-api-key"] = "authorization"
    scheme: Literal["Bearer", ""] = "Bearer"
    required: bool = True


class Agent(ClosedModel):
    """What an agent is given: the variables it reads, and the path its base URL ends with."""

    key_env: EnvName
    base_url_env: EnvName
    mount: UrlPath = ""


class Rules(ClosedModel):
    """What may stand in a body. Names may hold `*` for any text.

    `options` are fields that hold an object of plain values, with the keys it may have."""

    fields: tuple[Word, ...] = ()
    values: dict[str, tuple[Scalar, ...]] = Field(default_factory=dict)
    options: dict[str, tuple[Word, ...]] = Field(default_factory=dict)
    content: tuple[Word, ...] = ()
    types: tuple[Word, ...] = ()
    tools: tuple[Word, ...] = ()
    untyped_tools: bool = False
    opaque: tuple[Word, ...] = ()
    inline_only: tuple[Word, ...] = ()
    encoded_only: tuple[Word, ...] = ()
    refused_keys: tuple[Word, ...] = ()
    max_output: tuple[Word, ...] = ()
    usage_option: bool = False


class Feature(ClosedModel):
    """What the operator allows in addition when the configuration names this feature."""

    fields: tuple[Word, ...] = ()
    values: dict[str, tuple[Scalar, ...]] = Field(default_factory=dict)
    types: tuple[Word, ...] = ()
    tools: tuple[Word, ...] = ()
    keys: tuple[Word, ...] = ()


class Endpoint(ClosedModel):
    """One request an agent may make: method, exact path below the base URL, and the rules for its body."""

    method: Literal["GET", "POST"]
    path: Annotated[UrlPath, StringConstraints(min_length=2)]
    kind: Literal["chat", "completions", "responses", "messages", "count_tokens", "models"]
    query: dict[str, Regex] = Field(default_factory=dict)
    body: str | None = None
    metered: bool = True

    @model_validator(mode="after")
    def _body_fits_method(self) -> Endpoint:
        if (self.method == "POST") != (self.body is not None):
            raise ValueError("a POST endpoint names the rules of its body, a GET endpoint has none")
        return self


class UsageFields(ClosedModel):
    """Where a reply says what it used: objects `at`, and in them the first of each list that is a number.

    What stands `at_start` is a stream's first word on it, not its last."""

    at: tuple[str, ...]
    at_start: tuple[str, ...] = ()
    input: tuple[str, ...]
    cached_input: tuple[str, ...] = ()
    cache_write: tuple[str, ...] = ()
    cache_write_long: tuple[str, ...] = ()
    output: tuple[str, ...]
    input_is_total: bool


class Price(ClosedModel):
    """US dollars for a million tokens. What is not said costs as much as fresh input."""

    input: Usd
    output: Usd
    cached_input: Usd | None = None
    cache_write: Usd | None = None
    cache_write_long: Usd | None = None


class Provider(ClosedModel):
    """One model API: where it is, which requests pass, how the key goes in, what the replies say of usage."""

    name: Name
    base_url: str | None
    plain_http: bool = False
    key: Key
    agent: Agent
    headers: dict[FreeHeader, HeaderValue] = Field(default_factory=dict)
    request_headers: tuple[FreeHeader, ...]
    reply_headers: tuple[FreeHeader, ...]
    endpoints: Annotated[tuple[Endpoint, ...], Field(min_length=1)]
    bodies: dict[str, Rules]
    features: dict[Name, Feature] = Field(default_factory=dict)
    error: dict[str, str | dict[str, str | None]]
    usage: UsageFields
    aliases: dict[str, Word] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_exist(self) -> Provider:
        missing = {endpoint.body for endpoint in self.endpoints if endpoint.body is not None} - set(self.bodies)
        if missing:
            raise ValueError(f"endpoints name bodies that are not there: {', '.join(sorted(missing))}")
        for rules in self.bodies.values():
            if "model" not in rules.fields:
                raise ValueError("every body lists the field model, by which the broker knows what is asked")
        return self
