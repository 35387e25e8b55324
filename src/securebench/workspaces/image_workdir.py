"""The working directory of a task's image, as the beginning of a workspace.

An imported image is read where it lies; one that only a container engine has comes as a tar stream, which is unpacked
by the readers that unpack images. Links on the way to the directory are resolved as a process in the image would; no
link is followed by the host's kernel."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path, PurePosixPath

import anyio.to_thread

from securebench import _fs
from securebench.errors import PackError
from securebench.images import resolve_root
from securebench.images._inside import Inside
from securebench.images._layers import Layer, apply_tarball
from securebench.images._streams import Blob
from securebench.images._writer import RootfsWriter
from securebench.images.budget import Budget, ImportLimits
from securebench.sandboxes.base import ImageRoot, Routing, Sandbox, WorkdirSource
from securebench.workspaces.limits import MaterializationLimits


@asynccontextmanager
async def open_image_workdir(
    reference: str, workdir: str, sandbox: Sandbox | None, staging: Path, limits: MaterializationLimits
) -> AsyncIterator[int]:
    """A directory descriptor on the image's `workdir`. `staging` is an empty directory of ours.

    Raises PackError when the image has no such directory, SandboxUnavailable when nobody has the image."""
    while isinstance(sandbox, Routing):
        sandbox = sandbox.backend(ImageRoot(reference))
    if isinstance(sandbox, WorkdirSource):
        async with sandbox.workdir_tar(reference, workdir) as archive:
            await anyio.to_thread.run_sync(_unpack, archive, staging, reference, limits)
        with _fs.open_directory(staging) as root:
            yield root
        return
    with _fs.open_directory(resolve_root(reference).rootfs) as root:
        parts = [part.encode() for part in PurePosixPath(workdir).parts[1:]]
        with _directory(root, parts, f"{reference} ({workdir})") as found:
            yield found


@contextmanager
def _directory(root: int, parts: list[bytes], shown: str) -> Iterator[int]:
    """A directory inside a root file system, links on the way resolved as a process in the image would."""
    with Inside(root, Budget(ImportLimits())) as inside:
        try:
            place = inside.find(parts, create=False)
        except _fs.UnsafeEntry as error:
            raise PackError(f"image {shown}: its working directory cannot be used: {error}") from error
        if place is None:
            raise PackError(f"image {shown} has no such directory to start from; set environment.workdir")
        yield place.descriptor


def _unpack(archive: int, directory: Path, reference: str, limits: MaterializationLimits) -> None:
    bounds = ImportLimits(members=2 * limits.files + 2, total_bytes=limits.total_bytes + 2048 * limits.files)
    budget = Budget(bounds)
    layer = Layer(Blob(archive, 0, os.fstat(archive).st_size), f"the working directory of {reference}")
    with _fs.open_directory(directory) as root, RootfsWriter(root, budget) as writer:
        apply_tarball(writer, layer, budget)
