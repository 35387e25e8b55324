"""Where a task runs: image, directory, limits and the hosts its agent may reach."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_WORKDIR = "/workspace"


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """Where a task runs, with all defaults merged in; `None` leaves the choice to the run."""

    image: str | None = None
    workdir: str = DEFAULT_WORKDIR
    timeout_seconds: float | None = None
    materialize_workdir_from_image: bool = False
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    disk: int | None = None
    allowed_domains: tuple[str, ...] = ()
