"""What the engine recorded about a container."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from securebench.errors import SandboxError
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._outcome import Ending, from_bubblewrap

_NEVER = 2000  # engines write the year 1 for "not yet"
_GOING = frozenset({"removing", "dead"})


@dataclass(frozen=True, slots=True)
class State:
    """One container as the daemon knows it. Nothing here was said by what ran in it but its exit code."""

    running: bool
    exit_code: int
    oom_killed: bool
    error: str
    pid: int
    started: datetime | None
    finished: datetime | None
    removed: bool = False  # or about to be
    paused: bool = False

    @property
    def awake(self) -> bool:
        """Whether what is in it can do something now."""
        return self.running and not self.paused and not self.removed

    @property
    def wall_seconds(self) -> float:
        if self.started is None or self.finished is None:
            return 0.0
        return max(0.0, (self.finished - self.started).total_seconds())

    @property
    def ending(self) -> Ending:
        """Its exit code; 128 + n stands both for signal n and for that exit code, and is read as the signal."""
        return from_bubblewrap(self.exit_code)


async def inspect(client: Client, name: str) -> State:
    """The state of a container. Raises SandboxError."""
    doing = "looking at a container"
    found = await client.ask_json(doing, ["container", "inspect", "--format={{json .State}}", name])
    if not isinstance(found, Mapping):
        raise SandboxError(f"{doing}: the engine's answer has an unexpected form")
    try:
        return State(
            running=bool(found["Running"]),
            exit_code=int(found["ExitCode"]),
            oom_killed=bool(found["OOMKilled"]),
            error=str(found.get("Error", "")),
            pid=int(found.get("Pid", 0)),
            started=_time(str(found["StartedAt"])),
            finished=_time(str(found["FinishedAt"])),
            removed=str(found.get("Status", "")) in _GOING,
            paused=bool(found.get("Paused", False)),
        )
    except (KeyError, ValueError) as error:
        raise SandboxError(f"{doing}: the engine's answer lacks {error}") from error


async def volumes_of(client: Client, name: str) -> dict[str, str]:
    """The volumes a container has: target -> name. Raises SandboxError."""
    doing = "looking at a container's volumes"
    found = await client.ask_json(doing, ["container", "inspect", "--format={{json .Mounts}}", name])
    if not isinstance(found, list):
        raise SandboxError(f"{doing}: the engine's answer has an unexpected form")
    return {str(mount["Destination"]): str(mount["Name"]) for mount in found if mount.get("Type") == "volume"}


def _time(text: str) -> datetime | None:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.year > _NEVER else None
