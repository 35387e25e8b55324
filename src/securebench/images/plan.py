"""What a source turned out to be: an image to import, before anything of it is written."""

from __future__ import annotations

import platform as host
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from securebench.images._directory import copy_directory
from securebench.images._documents import Platform
from securebench.images._layers import Layer, apply_layer, apply_tarball
from securebench.images._writer import RootfsWriter
from securebench.images.budget import Budget


class ImportProgress(NamedTuple):
    """How far a step has come, in bytes; `total` is None where nobody knows."""

    step: str
    done: int
    total: int | None


OnProgress = Callable[[ImportProgress], None]


def quiet(_: ImportProgress) -> None:
    """Reports to nobody."""


class Contents(Protocol):
    """The files of an image."""

    @property
    def config(self) -> bytes | None:
        """The image's config as it is stored; None where the source has none."""
        ...

    @property
    def layer_count(self) -> int: ...

    def write(self, writer: RootfsWriter, budget: Budget, progress: OnProgress) -> None:
        """Raises ConfigError, IntegrityError or StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """An image ready to be written. `names` and `manifests` come from the source; digests in `manifests` were checked
    against its bytes. `claims` are pinned names somebody we trust (the Docker daemon) says belong to it."""

    contents: Contents
    names: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layers:
    """An image made of layers, lowest first."""

    config: bytes
    layers: tuple[Layer, ...]

    @property
    def layer_count(self) -> int:
        return len(self.layers)

    def write(self, writer: RootfsWriter, budget: Budget, progress: OnProgress) -> None:
        for number, layer in enumerate(self.layers, 1):
            step = f"layer {number} of {len(self.layers)}"
            apply_layer(writer, layer, budget, _reporter(progress, step, layer.blob.size))


@dataclass(frozen=True, slots=True)
class Tarball:
    """A root file system in one tar file, with its config where it was another store's."""

    layer: Layer
    config: bytes | None = None
    layer_count: int = 1

    def write(self, writer: RootfsWriter, budget: Budget, progress: OnProgress) -> None:
        apply_tarball(writer, self.layer, budget, _reporter(progress, "unpacking", self.layer.blob.size))


@dataclass(frozen=True, slots=True)
class Directory:
    """A root file system as a directory."""

    path: Path
    config: None = None
    layer_count: int = 1

    def write(self, writer: RootfsWriter, budget: Budget, progress: OnProgress) -> None:
        copy_directory(self.path, writer, budget, _reporter(progress, "copying", None))


def _reporter(progress: OnProgress, step: str, total: int | None) -> Callable[[int], None]:
    return lambda done: progress(ImportProgress(step, done, total))


_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv7l": "arm",
    "armv6l": "arm",
    "i686": "386",
    "i386": "386",
}


def host_platform() -> Platform:
    """This machine in the words of image indexes."""
    machine = host.machine()
    return Platform(os="linux", architecture=_ARCHITECTURES.get(machine, machine))
