"""Which backend runs a task: the one asked for, or the strongest that offers what it needs. Never a weaker one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes.base import Capabilities, Guarantee, HostRoot, ImageRoot, Root, Sandbox, SandboxSpec, Session

AUTO = "auto"

# Name -> (module, class). Imported when chosen, so that an unused backend costs nothing. Order breaks ties: the
# lightest first.
BACKENDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "bubblewrap": ("securebench.sandboxes.bubblewrap", "BubblewrapSandbox"),
        "docker": ("securebench.sandboxes.docker", "DockerSandbox"),
    }
)
# Used only where they are named: they guarantee nothing.
NAMED_ONLY: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"guarded": ("securebench.sandboxes.guarded", "GuardedSandbox")}
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen backend, what it was seen to guarantee, and why it was chosen, in words for the operator."""

    sandbox: Sandbox
    capabilities: Capabilities
    reason: str


OnProgress = Callable[[str], None]
"""Called with one line for the operator."""


@runtime_checkable
class Fetching(Protocol):
    """What a backend may have besides the members of `Sandbox`: a way to get an image this host does not have."""

    async def fetch(self, root: ImageRoot, on_progress: OnProgress) -> None:
        """Get the image and keep to exactly that one. Raises SandboxUnavailable with the remedy, SandboxError."""
        ...


def make_sandbox(name: str, runtime: str | None = None) -> Sandbox:
    """The backend called `name`. Raises ConfigError when there is none, or none with such a runtime."""
    known = {**BACKENDS, **NAMED_ONLY}
    if name not in known:
        raise ConfigError(f"unknown sandbox backend {name!r}; known are {AUTO}, {', '.join(known)}")
    module, attribute = known[name]
    factory: Callable[..., Sandbox] = getattr(import_module(module), attribute)
    return factory() if runtime is None else factory(runtime=runtime)


async def select_sandbox(
    backend: str,
    require: frozenset[Guarantee],
    roots: Iterable[Root] = (HostRoot(),),
    runtime: str | None = None,
    on_progress: OnProgress | None = None,
) -> Selection:
    """One sandbox for all `roots`: a backend, or, where no single one offers them all, a router between backends.

    With `on_progress`, an image that no backend has is fetched by the first that can; without, it is refused.

    Raises SandboxUnavailable with the remedy, ConfigError for an unknown name."""
    if runtime is not None and backend != "docker":
        raise ConfigError("sandbox.runtime chooses a container runtime; it needs sandbox.backend: docker")
    sandboxes = [make_sandbox(name, runtime) for name in (BACKENDS if backend == AUTO else [backend])]
    chosen = {root: await _choose(root, sandboxes, require, on_progress) for root in dict.fromkeys(roots)}
    different = {selection.sandbox.name: selection for selection in chosen.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    return _routed(chosen, list(different.values()))


async def _choose(
    root: Root, sandboxes: list[Sandbox], require: frozenset[Guarantee], on_progress: OnProgress | None
) -> Selection:
    """The strongest backend that offers this root and gives what is required; the first, hence lightest, of equals."""
    usable: list[tuple[Sandbox, Capabilities]] = []
    refusals: dict[str, SandboxUnavailable] = {}

    async def consider(sandbox: Sandbox, fetch: OnProgress | None) -> None:
        try:
            usable.append((sandbox, await _have(sandbox, root, require, fetch)))
        except SandboxUnavailable as error:
            refusals[sandbox.name] = error
        else:
            refusals.pop(sandbox.name, None)

    for sandbox in sandboxes:
        await consider(sandbox, None)
    for sandbox in sandboxes if on_progress is not None else ():
        if not usable:
            await consider(sandbox, on_progress)
    refused = "; ".join(str(error).splitlines()[0] for error in refusals.values())
    if not usable:
        remedies = dict.fromkeys(error.remedy for error in refusals.values() if error.remedy)
        raise SandboxUnavailable(f"{_described(root)} cannot be run: {refused}", "\n".join(remedies))
    sandbox, capabilities = max(usable, key=lambda pair: len(pair[1].guarantees))
    others = f"; not used: {refused}" if refused else ""
    reason = f"{_described(root)} in {sandbox.name}, which gives {_names(capabilities.guarantees)}{others}"
    return Selection(sandbox, capabilities, reason)


async def _have(sandbox: Sandbox, root: Root, require: frozenset[Guarantee], fetch: OnProgress | None) -> Capabilities:
    """What a backend gives for this root. Raises SandboxUnavailable when it has it not, or gives too little."""
    if not await sandbox.offers(root):
        if fetch is None or not isinstance(root, ImageRoot) or not isinstance(sandbox, Fetching):
            raise SandboxUnavailable(f"{sandbox.name} does not offer it", _remedy(root))
        before = await sandbox.probe()
        if before.usable:
            check(sandbox.name, before, require)  # nothing is fetched that could not be run
        await sandbox.fetch(root, fetch)
    capabilities = await sandbox.probe()
    check(sandbox.name, capabilities, require)
    return capabilities


def check(name: str, capabilities: Capabilities, require: frozenset[Guarantee]) -> None:
    """Raises SandboxUnavailable unless the backend is usable and gives all of `require`."""
    if not capabilities.usable:
        broken = next((finding.detail for finding in capabilities.findings if not finding.ok), "no reason given")
        raise SandboxUnavailable(f"{name} is not usable here: {broken}", capabilities.remedy)
    if missing := require - capabilities.guarantees:
        raise SandboxUnavailable(f"{name} cannot guarantee {_names(missing)} on this host", capabilities.remedy)


def _described(root: Root) -> str:
    if isinstance(root, ImageRoot):
        return f"image {root.reference}"
    return "the host's programs" if isinstance(root, HostRoot) else f"root directory {root.path}"


def _remedy(root: Root) -> str:
    if isinstance(root, ImageRoot):
        return (
            f"Import it for the embedded sandbox (securebench image import SOURCE --name {root.reference}), "
            f"or make it known to Docker (docker pull {root.reference}, docker load) and use sandbox.backend: auto or "
            "docker; sandbox.pull: missing fetches it before the run."
        )
    return "Use sandbox.backend: bubblewrap, or name an image in environment.image."


def _names(guarantees: frozenset[Guarantee]) -> str:
    return ", ".join(sorted(guarantees)) or "nothing"


def _routed(chosen: Mapping[Root, Selection], different: list[Selection]) -> Selection:
    guarantees = frozenset.intersection(*(selection.capabilities.guarantees for selection in different))
    findings = tuple(finding for selection in different for finding in selection.capabilities.findings)
    fingerprint = {
        f"{selection.sandbox.name}.{key}": value
        for selection in different
        for key, value in selection.capabilities.fingerprint.items()
    }
    capabilities = Capabilities(True, guarantees, findings, fingerprint)
    router = RoutedSandbox({root: selection.sandbox for root, selection in chosen.items()}, capabilities)
    return Selection(router, capabilities, "; ".join(selection.reason for selection in different))


class RoutedSandbox:
    """Several backends behind one: each spec goes to the backend chosen for its root."""

    def __init__(self, routes: Mapping[Root, Sandbox], capabilities: Capabilities) -> None:
        self._routes, self._capabilities = dict(routes), capabilities

    @property
    def name(self) -> str:
        return "+".join(dict.fromkeys(sandbox.name for sandbox in self._routes.values()))

    async def offers(self, root: Root) -> bool:
        return root in self._routes

    async def probe(self) -> Capabilities:
        return self._capabilities

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A sandbox of the backend chosen for the spec's root. Raises SandboxUnavailable for any other root."""
        return self.backend(spec.root).open(spec)

    def backend(self, root: Root) -> Sandbox:
        """The backend chosen for this root. Raises SandboxUnavailable when none was."""
        if root not in self._routes:
            raise SandboxUnavailable(f"no backend was chosen for {_described(root)}", _remedy(root))
        return self._routes[root]

    async def clean(self) -> list[str]:
        return [name for sandbox in set(self._routes.values()) for name in await sandbox.clean()]
