"""Lanes as types. A component gets a `ResourceView` that holds what it may see and knows nothing else.

| Visibility          | agent, worker | test_sandbox | evaluator |
|---------------------|---------------|--------------|-----------|
| `public`            | yes           | yes          | yes       |
| `evaluation_inputs` | no            | yes          | no        |
| `hidden`            | no            | no           | yes       |
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from securebench._json import Json

REDACTED = "[redacted]"


class Visibility(StrEnum):
    PUBLIC = "public"
    EVALUATION_INPUTS = "evaluation_inputs"
    HIDDEN = "hidden"


class Component(StrEnum):
    AGENT = "agent"
    WORKER = "worker"
    TEST_SANDBOX = "test_sandbox"
    EVALUATOR = "evaluator"


VISIBLE_TO: Mapping[Component, frozenset[Visibility]] = MappingProxyType(
    {
        Component.AGENT: frozenset({Visibility.PUBLIC}),
        Component.WORKER: frozenset({Visibility.PUBLIC}),
        Component.TEST_SANDBOX: frozenset({Visibility.PUBLIC, Visibility.EVALUATION_INPUTS}),
        Component.EVALUATOR: frozenset({Visibility.PUBLIC, Visibility.HIDDEN}),
    }
)


@dataclass(frozen=True, slots=True)
class PackFile:
    """A file or directory of the pack: its place beneath the asset root, and where it shall appear."""

    root: Path
    path: PurePosixPath
    mount: PurePosixPath
    read_only: bool
    digest: str  # of its tree, taken when the pack was loaded


@dataclass(frozen=True, slots=True)
class Resource:
    """One named thing of a task: a JSON value, files, or a value that names files."""

    name: str
    visibility: Visibility
    _value: Json = None
    files: tuple[PackFile, ...] = ()
    is_asset: bool = False

    @property
    def value(self) -> Any:
        """A copy, so that no reader can change what another one sees."""
        return copy.deepcopy(self._value)


@dataclass(frozen=True, slots=True)
class ResourceView:
    """What one component may see. Holds its own resources only; there is no way back to the bundle."""

    component: Component
    resources: tuple[Resource, ...]

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def values(self) -> dict[str, Any]:
        return {resource.name: resource.value for resource in self.resources if not resource.is_asset}

    def files(self) -> tuple[PackFile, ...]:
        return tuple(file for resource in self.resources for file in resource.files)


@dataclass(frozen=True, slots=True)
class ResourceBundle:
    """All resources of a task. Stays with the compiler and the engine; components get views."""

    resources: tuple[Resource, ...]

    def view(self, component: Component) -> ResourceView:
        visible = VISIBLE_TO[component]
        return ResourceView(component, tuple(r for r in self.resources if r.visibility in visible))

    def summary(self) -> dict[str, Any]:
        """Every resource by name with its lane; values of the public lane only."""
        return {
            resource.name: {
                "visibility": str(resource.visibility),
                "value": resource.value if resource.visibility is Visibility.PUBLIC else REDACTED,
            }
            for resource in self.resources
        }

    def secrets(self) -> tuple[Json, ...]:
        """The values that must not appear in anything written or shown."""
        return tuple(r.value for r in self.resources if r.visibility is not Visibility.PUBLIC)

    def public(self) -> tuple[Json, ...]:
        """The values everyone may see."""
        return tuple(r.value for r in self.resources if r.visibility is Visibility.PUBLIC)
