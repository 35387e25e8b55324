"""What must hold before anything runs: everything asked for is supported, and no agent can see what it must not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from securebench.benchmark_pack import BenchmarkPack
from securebench.environment import DEFAULT_WORKDIR
from securebench.errors import ConfigError, Problem, SandboxError
from securebench.harness_schema import BudgetSection
from securebench.sandboxes.base import (
    HOST_ROOT_PATHS,
    HostRoot,
    ImageRoot,
    Root,
    Sandbox,
    SandboxSpec,
    Scratch,
)
from securebench.sandboxes.canary import run_canary
from securebench.tester_config import TesterConfig

MAX_CANARIES = 16


def check_supported(config: TesterConfig, pack: BenchmarkPack) -> None:
    """Refuse settings this version would ignore. Raises ConfigError naming each."""
    asked = {
        "budget": config.budget != BudgetSection(),
        "executor.type: ray": config.executor.type == "ray",
    }
    ignored = [name for name, is_set in asked.items() if is_set]
    if ignored:
        raise ConfigError(f"not available in this version, so it would be ignored: {', '.join(ignored)}; remove it")
    networked = [
        Problem(str(pack.tasks_path), entry.line, "environment.network", "needs an egress proxy; this version has none")
        for entry in pack.entries
        if entry.networked
    ]
    if networked:
        raise ConfigError(networked[:20])


def check_out_of_sight(config: TesterConfig, roots: Iterable[Root]) -> None:
    """A task that sees the host's programs must not see the pack or the records there. Raises ConfigError."""
    if HostRoot() not in roots:
        return
    shown = [Path(path).resolve() for path in HOST_ROOT_PATHS]
    for what, path in (("pack", config.manifest), ("pack", config.tasks), ("output", config.output_dir)):
        place = path.resolve()
        if any(place.is_relative_to(directory) for directory in shown):
            raise ConfigError(
                f"the {what} {place} lies where agents see the host's programs ({', '.join(HOST_ROOT_PATHS[:2])} …); "
                "move it elsewhere, for instance to your home directory"
            )


async def check_walls(sandbox: Sandbox, roots: Sequence[Root]) -> None:
    """Look at the walls from inside, once per root. Raises SandboxError if one is missing."""
    for root in roots[:MAX_CANARIES]:
        spec = SandboxSpec(root=root, mounts=(Scratch(DEFAULT_WORKDIR),), cwd=DEFAULT_WORKDIR)
        if missing := await run_canary(sandbox, spec):
            raise SandboxError(f"the sandbox is not what it must be, nothing was run: {'; '.join(missing)}")


def task_roots(images: Iterable[str | None]) -> list[Root]:
    """The different root file systems that tasks with these images need."""
    return [HostRoot() if image is None else ImageRoot(image) for image in dict.fromkeys(images)] or [HostRoot()]
