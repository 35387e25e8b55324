"""The files an image brings in its work directory, as one archive. Nothing of the image is ever run.

A container is made of the image but never started, its directory read as a tar stream, and the container removed,
whatever happens. The stream is what the image's author wrote: whoever unpacks it does so strictly.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path, PurePosixPath

from securebench._leftovers import staging_directory
from securebench._proc import Pipe
from securebench.errors import ConfigError, InfrastructureError, SandboxError, os_reason
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.errors import explain, no_answer
from securebench.sandboxes._docker.image import Image
from securebench.sandboxes._docker.owner import ROLE, DeadMan, Owner, Removal
from securebench.sandboxes._docker.transfer import COPY_SECONDS, bounded_wait, in_thread, said

_CHUNK = 1 << 20
_MISSING = (
    b"could not find the file",
    b"no such container:path",
    b"no such file",
    b"not a directory",
    b"not found in container",
)


@asynccontextmanager
async def workdir_archive(client: Client, image: Image, workdir: str, limit: int) -> AsyncIterator[int]:
    """A descriptor, at its beginning, on a tar file of at most `limit` bytes with what is in `workdir` of the image.

    Raises ConfigError when the image has no such directory or it is larger, SandboxError, SandboxUnavailable.
    """
    _check(workdir)
    async with AsyncExitStack() as stack:
        staging = stack.enter_context(staging_directory())
        owner = Owner.new()
        switch = DeadMan(client, owner, staging)
        stack.push_async_callback(switch.disarm)
        name = owner.container("workdir")
        await stack.enter_async_context(Removal(client, name, switch))
        labels = [f"--label={key}={value}" for key, value in {**owner.labels, ROLE: "command"}.items()]
        # An image need not name a program, but a container must; this one never runs.
        words = ["create", "--pull=never", "--network=none", "--read-only", f"--name={name}", *labels]
        await client.make("looking into an image", [*words, "--entrypoint=/never", image.id])
        archive = _unnamed(staging)
        stack.callback(os.close, archive)
        await _save(client, f"{name}:{PurePosixPath(workdir)}/.", archive, limit, f"{workdir} of {image.reference}")
        os.lseek(archive, 0, os.SEEK_SET)
        yield archive


async def _save(client: Client, source: str, archive: int, limit: int, what: str) -> None:
    data, words = Pipe(*os.pipe()), Pipe.for_reading()
    process = None
    try:
        process = client.start(["cp", source, "-"], stdin=subprocess.DEVNULL, stdout=data.write, stderr=words.write)
        data.close_write()
        words.close_write()
        if not await in_thread(process, lambda: _copy(data.read, archive, limit)):
            raise ConfigError(f"{what} is larger than {limit} bytes; use an image with a smaller work directory")
        status = await bounded_wait(process)
        if status is None or status < 0:
            raise no_answer("reading an image", COPY_SECONDS)
        if status != 0:
            raise _refusal(what, said(words))
    finally:
        if process is not None:
            await process.close()
        data.close()
        words.close()


def _copy(source: int, archive: int, limit: int) -> bool:
    """Whether all of it fitted. Raises SandboxError when it cannot be written."""
    total = 0
    while chunk := os.read(source, _CHUNK):
        total += len(chunk)
        if total > limit:
            return False
        view = memoryview(chunk)
        try:
            while view:
                view = view[os.write(archive, view) :]
        except OSError as error:
            raise SandboxError(
                f"keeping an image's files: {os_reason(error)}; free some space, or set TMPDIR"
            ) from error
    return True


def _unnamed(directory: Path) -> int:
    """A file without a name, so that nothing remains of it."""
    path = directory / "workdir.tar"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    path.unlink()
    return descriptor


def _refusal(what: str, complaint: bytes) -> ConfigError | InfrastructureError:
    if any(words in complaint.lower() for words in _MISSING):
        return ConfigError(
            f"the image has no directory {what}; name one it has in environment.workdir, or add it to the image"
        )
    return explain("reading an image", complaint)


def _check(workdir: str) -> None:
    path = PurePosixPath(workdir)
    if not path.is_absolute() or ".." in path.parts or "\0" in workdir:
        raise ConfigError(f"work directory {workdir!r} must be absolute and without '..'")
