"""What `ahead.py` keeps: sessions in tasks of their own, on shelves of equal ones."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from securebench.errors import SandboxError
from securebench.sandboxes.base import Command, Preparable, Sandbox, SandboxSpec, Scratch, Session

Key = tuple[object, ...]


class Kept:
    """One session from its opening to its removal, in a task of its own."""

    def __init__(self, sandbox: Sandbox, spec: SandboxSpec, command: Command | None) -> None:
        self._sandbox, self._spec, self._command = sandbox, spec, command
        self._scope, self._over = anyio.CancelScope(), anyio.Event()
        self._session: Session | None = None
        self._error: Exception | None = None
        self._ready, self.gone = anyio.Event(), anyio.Event()

    async def live(self) -> None:
        """Opens it, keeps it until `let_go` or `cancel`, removes it."""
        try:
            with self._scope:
                async with self._sandbox.open(self._spec) as session:
                    if self._command is not None and isinstance(session, Preparable):
                        await session.begin(self._command)
                    self._session = session
                    self._ready.set()
                    await self._over.wait()
        except Exception as error:  # noqa: BLE001 — told to whoever asks for the session; else the backend cleans up
            self._error = error
        finally:
            self._ready.set()
            self.gone.set()

    async def session(self) -> Session:
        """The session, once it is open. Raises what opening it raised."""
        try:
            await self._ready.wait()
        except BaseException:
            self._scope.cancel()  # nobody else knows of it
            raise
        if self._error is not None:
            raise self._error
        if self._session is None:
            raise SandboxError("a sandbox was ended while it was being prepared")
        return self._session

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    def let_go(self) -> None:
        """Remove it, without waiting for that."""
        if self._ready.is_set():
            self._over.set()
        else:
            self._scope.cancel()


@dataclass(slots=True)
class Shelf:
    """Sessions of one kind: a spec without its seeds, and the command they have begun, if any."""

    spec: SandboxSpec
    command: Command | None
    waiting: deque[Kept] = field(default_factory=deque)
    asked: int = 0
    last: float = 0.0  # when it was asked for last
    depth: int = 0  # how many are to wait
    least: int = 0  # the fewest that waited since the last look


def seeds_of(spec: SandboxSpec) -> dict[str, Path]:
    return {scratch.target: scratch.seed for scratch in spec.scratches if scratch.seed is not None}


def without_seeds(spec: SandboxSpec) -> SandboxSpec:
    mounts = tuple(replace(mount, seed=None) if isinstance(mount, Scratch) else mount for mount in spec.mounts)
    return replace(spec, mounts=mounts)


def waiting_command(command: Command) -> Command:
    """What of a command that waits is known before anybody talks with it."""
    return Command(command.argv, env=command.env, cwd=command.cwd, waits=True)


def key_of(spec: SandboxSpec, command: Command | None) -> Key:
    """Equal for equal specs and commands; mappings cannot be keys themselves."""
    fields = (spec.root, spec.mounts, tuple(sorted(spec.env.items())), spec.cwd, spec.network, spec.limits)
    more = (spec.require, spec.capabilities, spec.user, spec.listeners)
    begun = None if command is None else (command.argv, tuple(sorted(command.env.items())), command.cwd)
    return (*fields, *more, begun)
