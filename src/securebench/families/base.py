"""What a family declares. Adding one touches its own file, its verifier and one line of the registry."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, JsonValue, StringConstraints, Tag

from securebench._paths import relative_path
from securebench._schema import ClosedModel, FileRef, suggest
from securebench._yaml import Loc
from securebench.resources import Visibility

HIDDEN = Visibility.HIDDEN
EVALUATION_INPUTS = Visibility.EVALUATION_INPUTS

MAX_KEYS = 1000
MAX_TEXT = 4 * 1024 * 1024
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


Argument = Annotated[str, StringConstraints(min_length=1, max_length=120_000), AfterValidator(_no_nul)]
"""Text that can be an argument of a program; the kernel takes no more than 128 KiB each."""
Argv = Annotated[tuple[Argument, ...], Field(min_length=1)]


class CandidateKind(StrEnum):
    """What a family collects from the agent."""

    TEXT = "text"
    CODE = "code"
    PATCH = "patch"
    WORKSPACE = "workspace"


class InputModel(ClosedModel):
    """The public fields of a row."""


def _file_or_value(value: Any) -> str:
    named = isinstance(value, dict) and "path" in value and value.keys() <= FileRef.model_fields.keys()
    return "file" if named or isinstance(value, FileRef) else "value"


FileOrValue = Annotated[
    Annotated[FileRef, Tag("file")] | Annotated[JsonValue, Tag("value")], Discriminator(_file_or_value)
]
"""Any JSON value; one of the form `{path[, mount, read_only]}` is a file under the eval root."""


class EvalModel(ClosedModel):
    """The private fields of a row. Each declares its lane; a key nobody declared is kept, and is hidden."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, FileOrValue]

    @classmethod
    def refused_keys(cls, keys: Collection[str]) -> Iterable[tuple[Loc, str]]:
        """Undeclared keys that cannot name a file, or come so close to a declared one that keeping them quietly
        would hide a mistake."""
        if len(keys) > MAX_KEYS:
            yield ("eval",), f"has {len(keys)} keys; at most {MAX_KEYS} are allowed"
            return
        for key in keys:
            if key in cls.model_fields:
                continue
            if hint := suggest(key, cls.model_fields):
                yield ("eval", key), f"unknown key {key[:80]!r}{hint}"
            elif key == "assets":
                yield ("eval", key), "names the public files of a row; choose another key for private ones"
            elif problem := _name_problem(key):
                yield ("eval", key), f"cannot be the name of a value: {problem}"


def _name_problem(key: str) -> str | None:
    try:
        relative_path(f"{key}.json")
    except ValueError as error:
        return str(error)
    return "contains '/'" if "/" in key else None


def text_or_file(value: Any) -> str:
    return "file" if isinstance(value, dict | FileRef) else "text"


TextOrFile = Annotated[Annotated[Text, Tag("text")] | Annotated[FileRef, Tag("file")], Discriminator(text_or_file)]


class RowCheck(Protocol):
    """Looks at input and eval together; yields the place and the message of each problem."""

    def __call__(self, public: Any, private: Any) -> Iterable[tuple[Loc, str]]: ...


def no_check(public: Any, private: Any) -> Iterable[tuple[Loc, str]]:  # noqa: ARG001 — the protocol's shape
    return ()


@dataclass(frozen=True)
class Family:
    """One kind of task: what its rows hold, who may see which field, what is collected, who verifies it."""

    name: str
    input_model: type[InputModel]
    eval_model: type[EvalModel]
    candidate: CandidateKind
    verifier: str | None = None  # "module:Class", imported when first needed
    check: RowCheck = no_check
    executes: bool = False  # whether a verdict needs candidate code to run

    @cached_property
    def lanes(self) -> Mapping[str, Visibility]:
        """The lane of every declared eval field, read from the model itself."""
        return MappingProxyType(
            {name: _lane(self.name, name, info.metadata) for name, info in self.eval_model.model_fields.items()}
        )


def _lane(family: str, name: str, metadata: list[Any]) -> Visibility:
    declared = [item for item in metadata if isinstance(item, Visibility)]
    if len(declared) != 1 or declared[0] is Visibility.PUBLIC:
        raise TypeError(f"eval field {family}.{name} must declare exactly one private lane")
    return declared[0]
