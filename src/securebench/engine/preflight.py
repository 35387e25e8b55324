"""What must hold before anything runs: everything asked for is supported, and no agent can see what it must not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from securebench.benchmark_pack import RowIndex
from securebench.environment import DEFAULT_WORKDIR
from securebench.errors import ConfigError, SandboxError
from securebench.families.base import CandidateKind
from securebench.families.registry import FAMILIES
from securebench.harness_schema import ChatHarness
from securebench.harnesses.factory import needs_sandbox
from securebench.sandboxes.base import (
    HOST_ROOT_PATHS,
    HostRoot,
    ImageRoot,
    ImageSource,
    Root,
    Sandbox,
    SandboxSpec,
    Scratch,
    root_of,
)
from securebench.sandboxes.canary import run_canary
from securebench.tester_config import TesterConfig

MAX_CANARIES = 16


def check_collectable(config: TesterConfig, entries: Iterable[RowIndex]) -> None:
    """A model that is only asked has no workspace to leave behind. Raises ConfigError."""
    if not isinstance(config.harness, ChatHarness):
        return
    for entry in entries:
        if FAMILIES[entry.family].candidate is CandidateKind.WORKSPACE:
            raise ConfigError(
                f"task {entry.id} collects a workspace, which needs an agent with a sandbox: use harness type codex, "
                "claude_code or command, or a pack without such tasks"
            )


def reachable_domains(config: TesterConfig, entries: Iterable[RowIndex]) -> list[str]:
    """One sentence about the hosts that agents may reach, if there are any: nobody should be surprised by them."""
    if not needs_sandbox(config):
        return []
    domains = set(getattr(config.harness.config, "allowed_domains", ()))
    domains |= {domain for entry in entries for domain in entry.domains}
    return [f"agents may reach {', '.join(sorted(domains))} through the proxy"] if domains else []


def check_out_of_sight(config: TesterConfig, roots: Iterable[Root]) -> None:
    """A task that sees the host's programs must not see the pack or the records there. Raises ConfigError."""
    check_places_out_of_sight({"pack": (config.manifest, config.tasks), "output": (config.output_dir,)}, roots)


def check_places_out_of_sight(places: Mapping[str, Sequence[Path]], roots: Iterable[Root]) -> None:
    """The same for any places, by what they are. Raises ConfigError."""
    if HostRoot() not in roots:
        return
    shown = [Path(path).resolve() for path in HOST_ROOT_PATHS]
    for what, path in ((what, path) for what, paths in places.items() for path in paths):
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


async def image_digests(sandbox: Sandbox | None, roots: Iterable[Root]) -> dict[str, str]:
    """Which image each name means here now."""
    names = [root.reference for root in roots if isinstance(root, ImageRoot)]
    return {name: await sandbox.image_digest(name) for name in names} if isinstance(sandbox, ImageSource) else {}


def task_roots(images: Iterable[str | None]) -> list[Root]:
    """The different root file systems that tasks with these images need."""
    return [root_of(image) for image in dict.fromkeys(images)] or [HostRoot()]
