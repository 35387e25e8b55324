"""The container that keeps a session's scratch volumes alive: filled before, and read after, anything untrusted runs.

With listeners it also keeps the network namespace that the commands share (`hand_over.py`).

A volume in memory exists while some container that has it runs. The holder is that container. It runs the image's
shell waiting for input, never a command of the spec, so copying into and out of it touches no process an agent
started, and by the time a tree is read no container but the holder has it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from securebench._proc import Pipe
from securebench.errors import (
    CandidateError,
    FailureReason,
    InfrastructureError,
    SandboxError,
    SandboxUnavailable,
)
from securebench.sandboxes._docker.args import Place, Program, holder_args
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.errors import explain, no_answer
from securebench.sandboxes._docker.hand_over import failed
from securebench.sandboxes._docker.state import inspect, volumes_of
from securebench.sandboxes._docker.tar_capture import CaptureLimits, Descriptor, LeftOut, capture
from securebench.sandboxes._docker.tar_seed import check_seed, write_seed
from securebench.sandboxes._docker.transfer import COPY_SECONDS, bounded_wait, in_thread, said
from securebench.sandboxes.base import SandboxSpec, Scratch


@dataclass(frozen=True, slots=True)
class Captured:
    """A scratch directory as it was when the session stopped."""

    descriptor: int
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """A running holder."""

    client: Client
    name: str
    id: str
    pid: int
    started: datetime | None
    volumes: Mapping[str, str]

    @classmethod
    async def start(
        cls, client: Client, place: Place, spec: SandboxSpec, name: str, program: Program | None = None
    ) -> Holder:
        """Make the volumes and fill them. Raises SandboxError, SandboxUnavailable."""
        seeds = {scratch.target: scratch.seed for scratch in spec.scratches if scratch.seed is not None}
        for seed in seeds.values():
            check_seed(seed)
        words, env_file = holder_args(place, spec, name, program)
        identity = await client.make("making what a sandbox keeps", words, stdin=env_file)
        state = await inspect(client, name)
        if not state.running:
            if program is not None:
                raise failed(state)
            raise SandboxUnavailable(
                f"image {place.image.reference} cannot hold scratch directories: its /bin/sh does not run",
                "Scratch directories need an image with a /bin/sh.",
            )
        holder = cls(client, name, identity, state.pid, state.started, await volumes_of(client, name))
        for scratch in spec.scratches:
            if scratch.target in seeds:
                await holder.fill(scratch, seeds[scratch.target], spec.user)
        return holder

    async def fill(self, scratch: Scratch, seed: Path, user: int) -> None:
        """Copy a staging directory into a scratch. Raises SandboxError."""
        data, words = Pipe(*os.pipe()), Pipe.for_reading()
        process = None
        try:
            process = self.client.start(
                ["cp", "-", f"{self.name}:{scratch.target}"], stdin=data.read, stderr=words.write
            )
            data.close_read()
            words.close_write()
            descriptor, data.write = data.write, -1
            await in_thread(process, lambda: _send(descriptor, seed, user))
            status = await bounded_wait(process)
            if status != 0:
                raise _refusal(scratch, said(words))
        finally:
            if process is not None:
                await process.close()
            data.close()
            words.close()

    async def take(self, scratch: Scratch, directory: Path) -> Captured:
        """Copy a scratch into a fresh directory. Raises CandidateError for its content, SandboxError for ours."""
        directory.mkdir(mode=0o700)
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        data, words = Pipe(*os.pipe()), Pipe.for_reading()
        process = None
        try:
            process = self.client.start(
                ["cp", f"{self.name}:{scratch.target}/.", "-"], stdout=data.write, stderr=words.write
            )
            data.close_write()
            words.close_write()
            limits = CaptureLimits(bytes=scratch.size)
            left_out = await in_thread(process, lambda: capture(Descriptor(data.read), root, limits))
            status = await bounded_wait(process)
            if status is None or status < 0:
                raise no_answer("reading a scratch directory", COPY_SECONDS)
            if status != 0:
                await self._blame(said(words))
        except BaseException:
            os.close(root)
            raise
        finally:
            if process is not None:
                await process.close()
            data.close()
            words.close()
        return Captured(root, left_out)

    async def check(self) -> None:
        """Raises SandboxError unless it ran all the time: without it the volumes were lost, and new ones are empty."""
        state = await inspect(self.client, self.name)
        if not state.awake or state.started != self.started:
            raise SandboxError("the container that held the scratch directories was ended from outside; they are lost")

    async def _blame(self, complaint: bytes) -> None:
        """An archive that fails although another path of the same container can be archived fails by its content."""
        control = await self.client.attempt("reading the holder", ["cp", f"{self.name}:/etc/hostname", "-"])
        if control.ok:
            text = complaint.decode("utf-8", "replace").strip()
            raise CandidateError(FailureReason.CANDIDATE_REFUSED, f"the tree cannot be archived: {text}")
        raise explain("reading a scratch directory", complaint)


def _send(descriptor: int, seed: Path, user: int) -> None:
    try:
        with open(descriptor, "wb") as stream:
            write_seed(stream, seed, user)
    except BrokenPipeError:
        return  # the client says why


def _refusal(scratch: Scratch, complaint: bytes) -> InfrastructureError:
    if b"no space left" in complaint.lower():
        return SandboxError(f"scratch {scratch.target}: No space left: its seed does not fit into {scratch.size} bytes")
    return explain(f"filling scratch {scratch.target}", complaint)
