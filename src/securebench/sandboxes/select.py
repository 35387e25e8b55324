"""Which backend runs a task: the one asked for, or the strongest that offers what it needs. Never a weaker one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

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


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen backend, what it was seen to guarantee, and why it was chosen, in words for the operator."""

    sandbox: Sandbox
    capabilities: Capabilities
    reason: str


def make_sandbox(name: str, runtime: str | None = None) -> Sandbox:
    """The backend called `name`. Raises ConfigError when there is none, or none with such a runtime."""
    if name not in BACKENDS:
        raise ConfigError(f"unknown sandbox backend {name!r}; known are {AUTO}, {', '.join(BACKENDS)}")
    module, attribute = BACKENDS[name]
    factory: Callable[..., Sandbox] = getattr(import_module(module), attribute)
    return factory() if runtime is None else factory(runtime=runtime)


async def select_sandbox(
    backend: str, require: frozenset[Guarantee], roots: Iterable[Root] = (HostRoot(),), runtime: str | None = None
) -> Selection:
    """One sandbox for all `roots`: a backend, or, where no single one offers them all, a router between backends.

    Raises SandboxUnavailable with the remedy, ConfigError for an unknown name."""
    if runtime is not None and backend != "docker":
        raise ConfigError("sandbox.runtime chooses a container runtime; it needs sandbox.backend: docker")
    sandboxes = [make_sandbox(name, runtime) for name in (BACKENDS if backend == AUTO else [backend])]
    chosen = {root: await _choose(root, sandboxes, require) for root in dict.fromkeys(roots)}
    different = {selection.sandbox.name: selection for selection in chosen.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    return _routed(chosen, list(different.values()))


async def _choose(root: Root, sandboxes: list[Sandbox], require: frozenset[Guarantee]) -> Selection:
    """The strongest backend that offers this root and gives what is required; the first, hence lightest, of equals."""
    usable: list[tuple[Sandbox, Capabilities]] = []
    refusals: list[str] = []
    remedies: list[str] = []
    for sandbox in sandboxes:
        if not await sandbox.offers(root):
            refusals.append(f"{sandbox.name} does not offer it")
            remedies.append(_remedy(root))
            continue
        capabilities = await sandbox.probe()
        try:
            check(sandbox.name, capabilities, require)
        except SandboxUnavailable as error:
            refusals.append(str(error).splitlines()[0])
            remedies.append(error.remedy)
        else:
            usable.append((sandbox, capabilities))
    if not usable:
        message = f"{_described(root)} cannot be run: {'; '.join(refusals)}"
        raise SandboxUnavailable(message, "\n".join(dict.fromkeys(filter(None, remedies))))
    sandbox, capabilities = max(usable, key=lambda pair: len(pair[1].guarantees))
    others = f"; not used: {'; '.join(refusals)}" if refusals else ""
    reason = f"{_described(root)} in {sandbox.name}, which gives {_names(capabilities.guarantees)}{others}"
    return Selection(sandbox, capabilities, reason)


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
            "or make it known to Docker (docker pull, docker load) and use sandbox.backend: auto or docker."
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
        if spec.root not in self._routes:
            raise SandboxUnavailable(f"no backend was chosen for {_described(spec.root)}", _remedy(spec.root))
        return self._routes[spec.root].open(spec)

    async def clean(self) -> list[str]:
        return [name for sandbox in set(self._routes.values()) for name in await sandbox.clean()]
