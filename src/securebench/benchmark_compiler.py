"""Compile checked rows into tasks: every field gets its lane, every file its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, overload

from securebench._schema import FileRef
from securebench.benchmark_pack import BenchmarkPack, BenchmarkRow, RowIndex, file_key, file_refs
from securebench.environment import DEFAULT_WORKDIR, TaskEnvironment
from securebench.families.registry import FAMILIES
from securebench.pack_schema import Environment, Manifest
from securebench.resources import PackFile, Resource, ResourceBundle, Visibility
from securebench.tasks import SecureBenchTask

EVAL_VISIBILITY: Mapping[str, Mapping[str, Visibility]] = MappingProxyType(
    {name: family.lanes for name, family in FAMILIES.items()}
)
"""The lane of every declared eval field, by family. What is not in the table is hidden."""


def eval_visibility(family: str, name: str) -> Visibility:
    return EVAL_VISIBILITY[family].get(name, Visibility.HIDDEN)


class CompiledTasks(Sequence[SecureBenchTask]):
    """The tasks of a pack, or some of them, compiled one at a time when asked for."""

    def __init__(self, pack: BenchmarkPack, indexes: Sequence[int]) -> None:
        self.pack = pack
        self.indexes = indexes  # of the rows in the pack

    @cached_property
    def entries(self) -> tuple[RowIndex, ...]:
        """Where the rows of these tasks stand in the pack."""
        return tuple([self.pack.entries[index] for index in self.indexes])

    def __len__(self) -> int:
        return len(self.indexes)

    @overload
    def __getitem__(self, index: int) -> SecureBenchTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SecureBenchTask]: ...
    def __getitem__(self, index: int | slice) -> SecureBenchTask | Sequence[SecureBenchTask]:
        if isinstance(index, slice):
            return [self._compile(number) for number in self.indexes[index]]
        return self._compile(self.indexes[index])

    def __iter__(self) -> Iterator[SecureBenchTask]:
        return map(self._compile, self.indexes)

    def _compile(self, number: int) -> SecureBenchTask:
        return compile_benchmark_row(self.pack, self.pack[number])


def compile_benchmark_pack(
    pack: BenchmarkPack, *, limit: int | None = None, indexes: Sequence[int] | None = None
) -> CompiledTasks:
    """The tasks of a checked pack in its order: all of them, or those of the rows at `indexes`; of these the first
    `limit`."""
    chosen: Sequence[int] = range(len(pack)) if indexes is None else indexes
    return CompiledTasks(pack, chosen if limit is None else chosen[: max(0, limit)])


def compile_benchmark_row(pack: BenchmarkPack, source: BenchmarkRow) -> SecureBenchTask:
    """One row as a task. Pure: reads nothing but its arguments."""
    row, family = source.row, FAMILIES[source.row.family]
    assets: list[PackFile] = []
    files: dict[str, list[PackFile]] = {}
    for root, loc, ref in file_refs(row, pack.manifest):
        place = assets if loc[0] == "assets" else files.setdefault(str(loc[1]), [])
        place.append(_pack_file(pack, root, ref))
    public = row.input.model_dump(mode="json", exclude_unset=True)
    private = row.eval.model_dump(mode="json", exclude_unset=True)
    resources = [Resource(name, Visibility.PUBLIC, value) for name, value in public.items()]
    if assets:
        resources.append(_assets(assets))
    resources += [
        Resource(name, eval_visibility(family.name, name), value, tuple(files.get(name, ())))
        for name, value in private.items()
    ]
    return SecureBenchTask(
        id=row.id,
        benchmark_id=pack.manifest.id,
        benchmark_version=pack.manifest.version,
        task_type=family.name,
        candidate_kind=str(family.candidate),
        environment=_environment(row.environment),
        row_digest=source.digest,
        resources=ResourceBundle(tuple(resources)),
        _metadata=MappingProxyType(row.metadata),
    )


def _assets(files: Sequence[PackFile]) -> Resource:
    value: list[Any] = [{"path": str(file.mount), "read_only": file.read_only} for file in files]
    return Resource("assets", Visibility.PUBLIC, value, tuple(files), is_asset=True)


def _pack_file(pack: BenchmarkPack, root: str, ref: FileRef) -> PackFile:
    manifest: Manifest = pack.manifest
    return PackFile(
        root=pack.directory / root,
        path=PurePosixPath(ref.path),
        mount=PurePosixPath(ref.mount or ref.path),
        read_only=manifest.asset_defaults.read_only if ref.read_only is None else ref.read_only,
        digest=pack.file_digests[file_key(root, ref)],
    )


def _environment(model: Environment) -> TaskEnvironment:
    limits = model.resources
    return TaskEnvironment(
        image=model.image,
        workdir=model.workdir or DEFAULT_WORKDIR,
        timeout_seconds=model.timeout_seconds,
        materialize_workdir_from_image=model.materialize_workdir_from_image,
        memory=limits.memory if isinstance(limits.memory, int) else None,
        cpus=limits.cpus,
        pids=limits.pids,
        disk=limits.disk if isinstance(limits.disk, int) else None,
        allowed_domains=model.network.allowed_domains,
    )
