"""Which backend runs a task: the one asked for, or the strongest that gives what is required. Never a weaker one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes.base import Capabilities, Guarantee, Sandbox

AUTO = "auto"

# Name -> (module, class). Imported when chosen, so that an unused backend costs nothing. Order breaks ties: the
# lightest first.
BACKENDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "bubblewrap": ("securebench.sandboxes.bubblewrap", "BubblewrapSandbox"),
    }
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen backend, what it was seen to guarantee, and why it was chosen, in words for the operator."""

    sandbox: Sandbox
    capabilities: Capabilities
    reason: str


def make_sandbox(name: str) -> Sandbox:
    """The backend called `name`. Raises ConfigError when there is none."""
    if name not in BACKENDS:
        raise ConfigError(f"unknown sandbox backend {name!r}; known are {AUTO}, {', '.join(BACKENDS)}")
    module, attribute = BACKENDS[name]
    factory: Callable[[], Sandbox] = getattr(import_module(module), attribute)
    return factory()


async def select_sandbox(backend: str, require: frozenset[Guarantee]) -> Selection:
    """The backend to use. Raises SandboxUnavailable with the remedy, ConfigError for an unknown name."""
    if backend != AUTO:
        sandbox = make_sandbox(backend)
        capabilities = await sandbox.probe()
        _check(sandbox.name, capabilities, require)
        return Selection(sandbox, capabilities, f"{backend} was asked for and gives {_names(capabilities.guarantees)}")
    return await _strongest(require)


async def _strongest(require: frozenset[Guarantee]) -> Selection:
    usable: list[tuple[Sandbox, Capabilities]] = []
    refusals: list[str] = []
    remedies: list[str] = []
    for name in BACKENDS:
        sandbox = make_sandbox(name)
        capabilities = await sandbox.probe()
        try:
            _check(name, capabilities, require)
        except SandboxUnavailable as error:
            refusals.append(str(error).splitlines()[0])
            remedies.append(error.remedy)
        else:
            usable.append((sandbox, capabilities))
    if not usable:
        raise SandboxUnavailable("; ".join(refusals), "\n".join(filter(None, remedies)))
    # max() keeps the first of equals, so the lighter backend wins a tie.
    sandbox, capabilities = max(usable, key=lambda pair: len(pair[1].guarantees))
    others = f"; not usable: {'; '.join(refusals)}" if refusals else ""
    reason = f"{sandbox.name} is the strongest usable backend and gives {_names(capabilities.guarantees)}{others}"
    return Selection(sandbox, capabilities, reason)


def _check(name: str, capabilities: Capabilities, require: frozenset[Guarantee]) -> None:
    if not capabilities.usable:
        broken = next((finding.detail for finding in capabilities.findings if not finding.ok), "no reason given")
        raise SandboxUnavailable(f"{name} is not usable here: {broken}", capabilities.remedy)
    if missing := require - capabilities.guarantees:
        raise SandboxUnavailable(f"{name} cannot guarantee {_names(missing)} on this host", capabilities.remedy)


def _names(guarantees: frozenset[Guarantee]) -> str:
    return ", ".join(sorted(guarantees)) or "nothing"
