"""Fetching an image that is not on this host, told as it happens, and pinned to what arrived.

The engine's client prints one line per change of a layer when it does not write to a terminal. They are counted, not
shown: a reader wants to know how far it is, and that it has not stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import anyio

from securebench._proc import Capture, Pipe
from securebench.errors import SandboxUnavailable
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.errors import explain_pull
from securebench.sandboxes._docker.image import Image, resolve

OnProgress = Callable[[str], None]
"""Called with one line for the operator."""

PULL_SECONDS = 3600.0
_TELL_SECONDS = 1.0  # at most this often
_QUIET_SECONDS = 15.0  # at least this often
_KEEP = 4 * 1024 * 1024

_LAYER = re.compile(r"([0-9a-f]{12}): (.+)")
_BLOB = re.compile(r"Copying blob (?:sha256:)?([0-9a-f]{12})")  # podman
_DIGEST = re.compile(r"Digest: (sha256:[0-9a-f]{64})")
_READY = ("Pull complete", "Already exists")


@dataclass(slots=True)
class Layers:
    """How far a pull is, from the lines of the client."""

    known: set[str] = field(default_factory=set)
    ready: set[str] = field(default_factory=set)
    digest: str | None = None
    _rest: bytes = b""

    def feed(self, data: bytes) -> None:
        """Take what arrived, in whatever pieces."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._see(line.decode("utf-8", "replace").strip())

    def _see(self, line: str) -> None:
        if found := _DIGEST.fullmatch(line):
            self.digest = found[1]
        elif found := _LAYER.fullmatch(line):
            self.known.add(found[1])
            if found[2].startswith(_READY):
                self.ready.add(found[1])
        elif found := _BLOB.match(line):
            self.known.add(found[1])

    def __str__(self) -> str:
        if not self.known:
            return "waiting for the registry"
        return f"{len(self.ready)} of {len(self.known)} layers" if self.ready else f"{len(self.known)} layers"


async def pull(client: Client, reference: str, on_progress: OnProgress) -> Image:
    """Fetch an image and say which one it is. Raises SandboxUnavailable with the remedy, SandboxError."""
    on_progress(f"pulling image {reference}")
    layers = Layers()
    status, complaint = await _run(client, reference, layers, on_progress)
    if status is None:
        raise SandboxUnavailable(
            f"pulling image {reference}: not done after {PULL_SECONDS:g} s ({layers})",
            f"Fetch it beforehand: {client.engine} pull {reference}",
        )
    if status != 0:
        raise explain_pull(reference, complaint)
    image = await resolve(client, _exactly(reference, layers.digest))
    on_progress(f"pulled image {reference}: {image.digest}")
    return replace(image, reference=reference)


async def _run(client: Client, reference: str, layers: Layers, on_progress: OnProgress) -> tuple[int | None, bytes]:
    """(exit status of the client, None when its time was up; what it complained about)."""
    out, err = Capture(_KEEP, _KEEP, layers.feed), Capture(_KEEP, _KEEP, layers.feed)
    pipes = [Pipe.for_reading(), Pipe.for_reading()]
    over = anyio.Event()
    process, status = None, None
    try:
        process = client.start(["pull", reference], stdout=pipes[0].write, stderr=pipes[1].write)
        for pipe in pipes:
            pipe.close_write()
        with anyio.move_on_after(PULL_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(out.drain, pipes[0].read)
                tasks.start_soon(err.drain, pipes[1].read)
                tasks.start_soon(_tell, reference, layers, on_progress, over)
                status = await process.wait()
                over.set()
    finally:
        if process is not None:
            await process.close()
        for pipe in pipes:
            pipe.close()
    return status, bytes(err.data)


async def _tell(reference: str, layers: Layers, on_progress: OnProgress, over: anyio.Event) -> None:
    """A line when something changed, but not too often; and one now and then when nothing did."""
    began = told = anyio.current_time()
    last = str(layers)
    while True:
        with anyio.move_on_after(_TELL_SECONDS):
            await over.wait()
            return
        now, state = anyio.current_time(), str(layers)
        if state != last or now - told >= _QUIET_SECONDS:
            on_progress(f"pulling image {reference}: {state}, {now - began:.0f} s")
            told, last = now, state


def _exactly(reference: str, digest: str | None) -> str:
    """The name of what was just pulled, which nobody can move to another image meanwhile."""
    if digest is None or "@" in reference:
        return reference
    host, slash, last = reference.rpartition("/")
    return f"{host}{slash}{last.partition(':')[0]}@{digest}"
