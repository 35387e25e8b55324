"""What the guarded backend needs of an operating system, as small as it can be, and which one this is.

One platform object serves one session: commands run one at a time, what they leave behind lives until the session
ends. Nothing here isolates; it bounds, counts, and ends everything a command started, as far as the system can tell.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from securebench.sandboxes._outcome import Ending
from securebench.sandboxes.base import Limits


@dataclass(frozen=True, slots=True)
class Order:
    """One command, complete. `stdio` and `channels` are descriptors of ours; a channel comes with its number."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    limits: Limits
    stdio: tuple[int, int, int]
    channels: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `refusal` says in words why it could not be run at all, with the errno."""

    ending: Ending
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    refusal: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """The sum over a command and everything it started that still lives. Sampled, so not exact."""

    cpu_seconds: float
    resident: int
    processes: int


class Platform(Protocol):
    """One session on one operating system."""

    def limits(self, limits: Limits) -> Mapping[str, str]:
        """What the kernel itself is asked to enforce of `limits`, by its own names."""
        ...

    async def start(self, order: Order) -> None:
        """Start a command under its limits, with default signals. Raises SandboxError."""
        ...

    async def ended(self) -> Ended:
        """Wait for the command's own end; what it started may live on. Raises SandboxError."""
        ...

    def kill_tree(self) -> None:
        """End the command and everything it started, without waiting for it."""
        ...

    def usage(self) -> Used:
        """What is used now."""
        ...


def open_platform() -> AbstractAsyncContextManager[Platform]:
    """The platform of this host; at the end nothing that was started on it lives."""
    if sys.platform == "win32":
        from securebench.sandboxes._guarded.windows import open_windows

        return open_windows()
    if sys.platform == "linux":
        from securebench.sandboxes._guarded.linux import open_linux

        return open_linux()
    from securebench.sandboxes._guarded.macos import open_macos

    return open_macos()
