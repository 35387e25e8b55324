"""The Docker backend: task images, by the command line client of Docker or Podman.

Each command runs in a container of its own, hardened as `args.py` says and removed afterwards. Commands of a
session share scratch directories and `/tmp`, which are volumes in memory that a holder container keeps; when the
session stops they are read through one archive stream of the holder. Not offered: the host's programs as root file
system, and inherited sockets other than standard input and output (`_docker/channels.py`).

An image's name is looked up once per backend object and the image then run by its id, so a tag that moves changes
nothing. Only `fetch` pulls.

`Network.NONE` and `LOOPBACK` are both a network namespace with nothing but a private loopback interface; with `NONE`
internet sockets cannot be made at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from securebench.errors import SandboxError, SandboxUnavailable
from securebench.sandboxes._bubblewrap.args import check_mounts
from securebench.sandboxes._docker import owner as _docker_owner
from securebench.sandboxes._docker.client import Client, find_client
from securebench.sandboxes._docker.image import Image, reference_of, resolve
from securebench.sandboxes._docker.probe import NO_IMAGE, Probed, probe_engine
from securebench.sandboxes._docker.pull import OnProgress, pull
from securebench.sandboxes._docker.session import Engine, open_session
from securebench.sandboxes._docker.workdir import workdir_archive
from securebench.sandboxes.base import (
    MIB,
    Capabilities,
    Guarantee,
    ImageRoot,
    Root,
    SandboxSpec,
    Session,
    refuse_host_network,
)

MOST_WORKDIR_BYTES = 8 * 1024 * MIB


class DockerSandbox:
    """Sandboxes made by a container engine. `engine` is `docker`, `podman` or whichever is installed."""

    name = "docker"

    def __init__(self, engine: str | None = None, runtime: str | None = None) -> None:
        self._engine, self._runtime = engine, runtime
        self._probed: Probed | None = None
        self._probing: anyio.Lock | None = None
        self._images: dict[str, Image] = {}

    async def probe(self) -> Capabilities:
        """What the engine guarantees here, seen by running containers once per process."""
        return (await self._look()).capabilities

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A fresh sandbox. Raises SandboxUnavailable, SandboxError, ConfigError on entry."""
        return self._open(spec)

    async def offers(self, root: Root) -> bool:
        """Images the engine has; nothing else. An engine that does not answer offers none."""
        if not isinstance(root, ImageRoot):
            return False
        try:
            await self._image(find_client(self._engine), reference_of(root))
        except (SandboxError, SandboxUnavailable):
            return False
        return True

    async def image_digest(self, reference: str) -> str:
        """The id of an image the engine has, by which it is run. Raises SandboxUnavailable, SandboxError."""
        return (await self._image(find_client(self._engine), reference_of(ImageRoot(reference)))).id

    async def images(self) -> list[str]:
        """The names of the images the engine has, sorted. Raises SandboxUnavailable, SandboxError."""
        args = ["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]
        names = await find_client(self._engine).ask("listing images", args)
        return sorted({name for name in names.split() if "<none>" not in name})

    async def fetch(self, root: ImageRoot, on_progress: OnProgress) -> None:
        """Pull an image, unless this engine could not run it anyway. Raises SandboxUnavailable, SandboxError."""
        reference = reference_of(root)
        probed = await self._look()
        nothing_to_try = NO_IMAGE in probed.capabilities.findings
        if probed.engine is None and not nothing_to_try:
            raise _unusable(probed.capabilities)
        self._images[reference] = await pull(find_client(self._engine), reference, on_progress)
        if nothing_to_try:
            self._probed = None  # now there is an image to look with

    def workdir_tar(
        self, reference: str, workdir: str, limit: int = MOST_WORKDIR_BYTES
    ) -> AbstractAsyncContextManager[int]:
        """A descriptor on a tar file with what is in `workdir` of an image the engine has; nothing of it is run.

        Raises on entry ConfigError when the image has no such directory or more than `limit` bytes in it,
        SandboxUnavailable with the remedy when there is no such image or engine, SandboxError."""
        return self._workdir_tar(reference, workdir, limit)

    async def clean(self) -> list[str]:
        """Remove containers whose owner no longer lives; their names. Raises SandboxError, SandboxUnavailable."""
        return await _docker_owner.clean_leftovers(find_client(self._engine))

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        refuse_host_network(spec, self.name)
        check_mounts(spec)
        reference = reference_of(spec.root)
        engine = self._require(spec, await self._look())
        image = await self._image(engine.client, reference)
        async with open_session(engine, spec, image) as session:
            yield session

    @asynccontextmanager
    async def _workdir_tar(self, reference: str, workdir: str, limit: int) -> AsyncIterator[int]:
        client = find_client(self._engine)
        image = await self._image(client, reference_of(ImageRoot(reference)))
        async with workdir_archive(client, image, workdir, limit) as archive:
            yield archive

    async def _image(self, client: Client, reference: str) -> Image:
        if reference not in self._images:
            self._images[reference] = await resolve(client, reference)
        return self._images[reference]

    async def _look(self) -> Probed:
        if self._probed is None:
            if self._probing is None:
                self._probing = anyio.Lock()
            async with self._probing:
                if self._probed is None:
                    self._probed = await probe_engine(self._engine, self._runtime)
        return self._probed

    def _require(self, spec: SandboxSpec, probed: Probed) -> Engine:
        capabilities = probed.capabilities
        if probed.engine is None:
            raise _unusable(capabilities)
        if missing := spec.require - capabilities.guarantees:
            names = ", ".join(sorted(missing))
            raise SandboxUnavailable(
                f"docker cannot guarantee {names} on this host", _how_to_get(capabilities, missing)
            )
        return probed.engine


def _unusable(capabilities: Capabilities) -> SandboxUnavailable:
    broken = next((finding.detail for finding in capabilities.findings if not finding.ok), "unknown reason")
    return SandboxUnavailable(f"docker is not usable here: {broken}", capabilities.remedy)


def _how_to_get(capabilities: Capabilities, missing: frozenset[Guarantee]) -> str:
    if Guarantee.KERNEL in missing:
        return (
            "A kernel of its own needs the runsc runtime: install gVisor, register it with the daemon with the runtime "
            "argument --network=none, and set `sandbox.runtime: runsc`."
        )
    return capabilities.remedy
