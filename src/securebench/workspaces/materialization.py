"""Put what one component may see into an empty directory, adding bytes to nothing.

Values appear as JSON beneath the component root of their lane, files at their mounts. Everything gets the same
time, a plain mode and a stable order, so that nothing an agent can look at says more than its content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from securebench import _fs, _json
from securebench._paths import relative_path
from securebench.errors import InfrastructureError, PackError
from securebench.resources import Component, PackFile, ResourceView, Visibility
from securebench.workspaces.copying import WRITABLE, copy_pack_file
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget
from securebench.workspaces.path_policy import (
    COMPONENT_ROOTS,
    TASK_FILE,
    PathRefused,
    check_collisions,
    check_mount,
)


@dataclass(frozen=True, slots=True)
class PlannedValue:
    """A JSON value and the file it becomes."""

    place: PurePosixPath
    data: bytes


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file or directory of the pack and the place where it appears."""

    place: PurePosixPath
    source: PackFile


@dataclass(frozen=True, slots=True)
class MaterializationPlan:
    """Everything that will be written, decided before a byte is."""

    component: Component
    values: tuple[PlannedValue, ...]
    files: tuple[PlannedFile, ...]


class VisibilityAwareMaterializer:
    """Builds the directory of one component from its view, and from nothing else."""

    def __init__(self, component: Component, limits: MaterializationLimits | None = None) -> None:
        self.component = component
        self.limits = limits or MaterializationLimits()

    def plan(
        self, view: ResourceView, payload: dict[str, Any] | None = None, task_file: PurePosixPath = TASK_FILE
    ) -> MaterializationPlan:
        """Decide every place. Raises PackError where the path policy refuses one."""
        if view.component is not self.component:
            raise ValueError(f"a view for {view.component} cannot be materialized for {self.component}")
        files = []
        try:
            values = [
                PlannedValue(COMPONENT_ROOTS[r.visibility] / _file_name(r.name), _json.dumps(r.value).encode())
                for r in view
                if not r.is_asset
            ]
            if payload is not None:
                values.append(PlannedValue(task_file, (_json.dumps(payload) + "\n").encode()))
            for resource in view:
                for file in resource.files:
                    if resource.visibility is Visibility.PUBLIC:
                        check_mount(file.mount, task_file)
                        files.append(PlannedFile(file.mount, file))
                    else:
                        files.append(PlannedFile(COMPONENT_ROOTS[resource.visibility] / file.mount, file))
            files = list(dict.fromkeys(files))  # two fields may name the same file
            check_collisions([value.place for value in values] + [file.place for file in files])
        except PathRefused as error:
            raise PackError(str(error)) from error
        return MaterializationPlan(self.component, tuple(values), tuple(files))

    def materialize(self, plan: MaterializationPlan, directory: Path, budget: WorkspaceBudget | None = None) -> None:
        """Write a plan into an empty directory; a given budget goes on to count what is added later.

        Raises PackError when an asset is not plain or too large, InfrastructureError when the host cannot read or
        write it, IntegrityError when an asset is not what it was."""
        if any(directory.iterdir()):
            raise ValueError(f"{directory} is not empty; a workspace is built from nothing")
        budget = budget or WorkspaceBudget(self.limits)
        try:
            with _fs.open_directory(directory) as root:
                for value in plan.values:
                    budget.take(_fs.write_new(root, value.place, value.data, WRITABLE))
                for file in plan.files:
                    copy_pack_file(file.source, root, file.place, budget)
            _fs.settle_times(directory)
        except _fs.UnsafeEntry as error:
            raise PackError(f"asset {error}") from error
        except OSError as error:
            raise InfrastructureError(f"the workspace cannot be written: {error.strerror}") from error


def _file_name(name: str) -> PurePosixPath:
    try:
        path = relative_path(f"{name}.json")
    except ValueError as error:
        raise PathRefused(f"{name!a} cannot be the name of a value: {error}") from None
    if len(path.parts) > 1:
        raise PathRefused(f"{name!a} cannot be the name of a value: it contains '/'")
    return path
