"""What a family declares. Adding one touches its own file, its verifier and one line of the registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Protocol

from pydantic import ConfigDict, Discriminator, Field, JsonValue, StringConstraints, Tag

from securebench._schema import ClosedModel, FileRef, suggest
from securebench._yaml import Loc
from securebench.resources import Visibility

HIDDEN = Visibility.HIDDEN
EVALUATION_INPUTS = Visibility.EVALUATION_INPUTS

MAX_TEXT = 4 * 1024 * 1024
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Seconds = Annotated[float, Field(gt=0, le=86_400, strict=False)]
Argv = Annotated[tuple[Text, ...], Field(min_length=1)]


class CandidateKind(StrEnum):
    """What a family collects from the agent."""

    TEXT = "text"
    CODE = "code"
    PATCH = "patch"
    WORKSPACE = "workspace"


class InputModel(ClosedModel):
    """The public fields of a row."""


class EvalModel(ClosedModel):
    """The private fields of a row. Each declares its lane; a key nobody declared is kept, and is hidden."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue]

    def misspelt(self) -> Iterable[tuple[Loc, str]]:
        """Undeclared keys so close to a declared one that keeping them quietly would hide a mistake."""
        for key in self.__pydantic_extra__:
            if hint := suggest(key, type(self).model_fields):
                yield ("eval", key), f"unknown key {key!r}{hint}"


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
