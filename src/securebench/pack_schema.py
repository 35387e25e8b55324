"""The closed models of a pack's files: manifest, environment, assets and rows."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, model_validator

from securebench._domains import canonical_domain
from securebench._paths import canonical_key, overlaps, relative_path
from securebench._schema import ClosedModel, FileRef, RelativePath, Schema, suggest
from securebench.families.base import EvalModel, Family, InputModel, Seconds
from securebench.families.registry import FAMILIES

Input = TypeVar("Input", bound=InputModel)
Eval = TypeVar("Eval", bound=EvalModel)


def _printable(text: str) -> str:
    if text != text.strip() or any(unicodedata.category(char)[0] == "C" for char in text):
        raise ValueError("must not contain control or invisible characters, nor begin or end with a space")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]

MAX_SIZE = 2**50
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def _parse_size(value: int | str) -> int:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,15})\s?([kmgt]?)(?:i?b)?", value.lower(), re.ASCII)
        if match is None:
            raise ValueError("expected a size such as 512m, 1g or a number of bytes")
        value = int(match[1]) * _UNITS[match[2]]
    if not 0 < value <= MAX_SIZE:
        raise ValueError("must be greater than 0 and at most 1024t")
    return value


Size = Annotated[int | str, AfterValidator(_parse_size)]
"""Bytes, or text such as `512m`; an int once validated."""


def _check_workdir(text: str) -> str:
    if not text.startswith("/") or text == "/":
        raise ValueError("must be an absolute path below '/'")
    return f"/{relative_path(text[1:])}"


def _check_image(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*", text, re.ASCII):
        raise ValueError("expected an image such as python:3.12 or name@sha256:…")
    return text


def _check_family(text: str) -> str:
    if text not in FAMILIES:
        raise ValueError(f"expected one of {', '.join(FAMILIES)}{suggest(text, FAMILIES)}")
    return text


def _check_domain(text: str) -> str:
    try:
        if canonical_domain(text) == text:
            return text
    except ValueError:
        pass  # the sentence below says more to the author than which rule it was
    raise ValueError("expected one exact, lower-case host name such as api.example.com")


Domain = Annotated[str, AfterValidator(_check_domain)]


class Resources(ClosedModel):
    """What one sandbox of a task may use."""

    memory: Size | None = None
    cpus: Annotated[float, Field(gt=0, le=1024)] | None = None
    pids: Annotated[int, Field(gt=0, le=100_000)] | None = None
    disk: Size | None = None


class NetworkPolicy(ClosedModel):
    """Host names the agent may reach through the proxy; none by default."""

    allowed_domains: tuple[Domain, ...] = ()


class Environment(ClosedModel):
    """Where a task runs."""

    image: Annotated[Name, AfterValidator(_check_image)] | None = None
    workdir: Annotated[str, AfterValidator(_check_workdir)] | None = None
    timeout_seconds: Seconds | None = None
    materialize_workdir_from_image: bool = False
    resources: Resources = Field(default_factory=Resources)
    network: NetworkPolicy = Field(default_factory=NetworkPolicy)


class Defaults(ClosedModel):
    """What rows of the pack need not repeat."""

    family: Annotated[str, AfterValidator(_check_family), Field(json_schema_extra={"enum": [*FAMILIES]})] | None = None
    environment: Environment = Field(default_factory=Environment)


class AssetRoots(ClosedModel):
    """Where the pack's files lie: those the agent gets and those it never sees."""

    public: RelativePath = "assets"
    eval: RelativePath = "hidden"

    @model_validator(mode="after")
    def _apart(self) -> AssetRoots:
        if overlaps(canonical_key(self.public), canonical_key(self.eval)):
            raise ValueError("public and eval must not be the same directory or lie inside each other")
        return self


class AssetDefaults(ClosedModel):
    read_only: bool = True


Count = Annotated[int, Field(ge=0)]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class SourceNote(ClosedModel):
    """Where an imported pack comes from, and what of it became rows. The pack's digest is over it."""

    format: Name
    name: Name
    digest: Digest
    only: tuple[Name, ...] = ()  # patterns by which files of it were chosen
    licence: Name | None = None
    url: Name | None = None
    revision: Name | None = None
    prompt: Name = "default"
    settings: dict[Name, Name] = Field(default_factory=dict)  # of the format, where they are not its defaults
    mapping: Digest | None = None  # of the mapping file of the format `jsonl`
    examples: Digest | None = None  # of the source of the examples that prompts show
    shots: Count | None = None  # that prompts show, where it is not the format's own number
    limit: Count | None = None  # only so many of its rows were looked at
    rows: Count  # that were looked at
    left_out: Count = 0  # rows that could not be converted
    excluded: Count = 0  # rows that were converted, and not admitted


class Manifest(ClosedModel):
    """`manifest.yaml`: what the pack is and what its rows share."""

    id: Name
    version: Count
    defaults: Defaults = Field(default_factory=Defaults)
    asset_roots: AssetRoots = Field(default_factory=AssetRoots)
    asset_defaults: AssetDefaults = Field(default_factory=AssetDefaults)
    source: SourceNote | None = None


class Row(ClosedModel, Generic[Input, Eval]):
    """One line of `tasks.jsonl`."""

    id: Name
    family: str
    input: Input
    eval: Eval
    assets: tuple[FileRef, ...] = ()
    environment: Environment = Field(default_factory=Environment)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


AnyRow = Row[Any, Any]
MANIFEST: Schema[Manifest] = Schema(Manifest)


@cache
def row_schema(family: Family) -> Schema[AnyRow]:
    """The closed model of one family's rows."""
    return Schema(Row[family.input_model, family.eval_model])  # type: ignore[name-defined]


def row_json_schema() -> dict[str, Any]:
    """One JSON Schema for rows of every family, as `securebench schema row` prints it."""
    definitions: dict[str, Any] = {}
    branches = []
    for name, family in FAMILIES.items():
        schema = dict(row_schema(family).json_schema)
        definitions.update(schema.pop("$defs", {}))
        schema["properties"] = schema["properties"] | {"family": {"const": name, "type": "string"}}
        schema["required"] = [key for key in schema["required"] if key != "family"]  # the manifest may give it
        schema["title"] = f"{name} row"
        branches.append(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SecureBench row",
        "anyOf": branches,
        "$defs": definitions,
    }
