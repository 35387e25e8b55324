"""How strongly a stranger's program is confined: the level asked for, or the strongest this host offers.

`auto` is bubblewrap where its probe saw files, processes and network confined, else docker where an image with
Python is named, else a refusal with the remedy. The guard alone confines nothing against an attacker, so it is
never chosen: it has to be asked for by its name.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.execution.interpreter import IN_IMAGE, Interpreter, find_interpreter, find_on_host
from securebench.execution.request import Assurance
from securebench.sandboxes.base import ISOLATED, Capabilities, Guarantee, HostRoot, ImageRoot, Root, Sandbox
from securebench.sandboxes.select import make_sandbox

AUTO, GUARD, BUBBLEWRAP, DOCKER = "auto", "guard", "bubblewrap", "docker"
LEVELS = (AUTO, GUARD, BUBBLEWRAP, DOCKER)
UNSAFE = "unsafe"

IMAGE_SETTING = "SECUREBENCH_PYTHON_IMAGE"
"""The environment variable that names a container image with python3, for the docker level."""

_CGROUPS = "Run as root, or give this session control groups: systemd-run --user --scope -p Delegate=yes securebench …"


@dataclass(frozen=True, slots=True)
class Isolation:
    """A level that was reached: its backend, what that was seen to guarantee, and what a program gets there.

    `require` is what every run demands of the backend again. `channels`: sockets can be handed down under any number.
    `on_host`: there is no file system but the host's. `cpu_share`: a share of a core can be enforced.
    `host_network`: the host's network can be given.
    """

    level: str
    sandbox: Sandbox
    capabilities: Capabilities
    reason: str
    root: Root
    interpreter: Interpreter
    assurance: Assurance
    require: frozenset[Guarantee] = ISOLATED
    channels: bool = True
    on_host: bool = False
    cpu_share: bool = True
    host_network: bool = False

    @property
    def guarded(self) -> bool:
        """Whether the guard runs the program, which is everywhere but where the operator switched it off."""
        return self.assurance != "unsafe"

    @staticmethod
    def new_name(purpose: str) -> str:
        """A name that no other run has."""
        return f"{purpose}-{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class Wish:
    """What to run with, where the level leaves a choice; the settings fill what is not named."""

    image: str | None = None
    python: str | None = None


_NO_WISH = Wish()
_selected: dict[tuple[str, Wish, str | None], Isolation] = {}


async def select_isolation(level: str = AUTO, wish: Wish = _NO_WISH) -> Isolation:
    """The level asked for, seen to work here. Looked at once per process.

    Raises SandboxUnavailable with the remedy, ConfigError for an unknown level or a wrong setting."""
    if level not in LEVELS:
        raise ConfigError(f"unknown isolation {level!r}; known are {', '.join(LEVELS)}")
    key = (level, wish, os.environ.get(IMAGE_SETTING))
    if key not in _selected:
        _selected[key] = await (_strongest(wish) if level == AUTO else _MAKERS[level](wish))
    return _selected[key]


async def unsafe_isolation(wish: Wish = _NO_WISH) -> Isolation:
    """No protection at all, for an operator who said so. The program runs on the host, as the operator."""
    from securebench.sandboxes.host import HostSandbox

    sandbox = HostSandbox()
    return Isolation(
        level=UNSAFE,
        sandbox=sandbox,
        capabilities=await sandbox.probe(),
        reason="the operator switched every protection off",
        root=HostRoot(),
        interpreter=find_on_host(wish.python),
        assurance="unsafe",
        require=frozenset(),
        channels=False,
        on_host=True,
        host_network=True,
        cpu_share=False,
    )


async def _strongest(wish: Wish) -> Isolation:
    refusals: list[SandboxUnavailable] = []
    for level in (BUBBLEWRAP, DOCKER):
        try:
            return await _MAKERS[level](wish)
        except SandboxUnavailable as refusal:
            refusals.append(refusal)
    reasons = "; ".join(str(refusal).splitlines()[0] for refusal in refusals)
    remedies = list(dict.fromkeys(refusal.remedy for refusal in refusals if refusal.remedy))
    last = (
        "Only for code you would run anyway: --isolation guard, which hinders mistakes but stops no attacker."
        " `securebench doctor` shows what was tried."
    )
    raise SandboxUnavailable(
        f"nothing on this host confines a stranger's program: {reasons}", "\n".join([*remedies, last])
    )


async def _bubblewrap(wish: Wish) -> Isolation:
    sandbox = make_sandbox(BUBBLEWRAP)
    root: Root = HostRoot() if wish.image is None else ImageRoot(wish.image)
    capabilities = await _usable(sandbox, ISOLATED)
    if not await sandbox.offers(root):
        raise SandboxUnavailable(
            f"bubblewrap has no image {wish.image!r}", "Import it: securebench image import SOURCE --name NAME"
        )
    return Isolation(
        level=BUBBLEWRAP,
        sandbox=sandbox,
        capabilities=capabilities,
        reason=_reason(sandbox, capabilities),
        root=root,
        interpreter=IN_IMAGE if wish.image else find_interpreter(wish.python),
        assurance="isolated",
        host_network=True,
        cpu_share=_has_cpu_controller(capabilities.fingerprint),
    )


async def _docker(wish: Wish) -> Isolation:
    image = wish.image or os.environ.get(IMAGE_SETTING)
    if not image:
        raise SandboxUnavailable(
            "docker needs an image that holds python3, and none is named",
            f"Name one that is on this host: {IMAGE_SETTING}=python:3.12-slim (docker pull python:3.12-slim).",
        )
    sandbox = make_sandbox(DOCKER)
    capabilities = await _usable(sandbox, ISOLATED)
    if not await sandbox.offers(ImageRoot(image)):
        raise SandboxUnavailable(f"docker has no image {image!r} on this host", f"Get it: docker pull {image}")
    return Isolation(
        level=DOCKER,
        sandbox=sandbox,
        capabilities=capabilities,
        reason=_reason(sandbox, capabilities),
        root=ImageRoot(image),
        interpreter=IN_IMAGE,
        assurance="isolated",
        channels=False,
    )


async def _guard(wish: Wish) -> Isolation:
    sandbox = make_sandbox("guarded")
    capabilities = await _usable(sandbox, frozenset())
    return Isolation(
        level=GUARD,
        sandbox=sandbox,
        capabilities=capabilities,
        reason="asked for by name; guards hinder mistakes and stop no attacker",
        root=HostRoot(),
        interpreter=find_on_host(wish.python),
        assurance="guarded",
        require=frozenset(),
        channels=sys.platform == "linux",
        on_host=True,
        cpu_share=_has_cpu_controller(capabilities.fingerprint),
    )


_MAKERS: Mapping[str, Callable[[Wish], Awaitable[Isolation]]] = {
    BUBBLEWRAP: _bubblewrap,
    DOCKER: _docker,
    GUARD: _guard,
}


async def _usable(sandbox: Sandbox, require: frozenset[Guarantee]) -> Capabilities:
    capabilities = await sandbox.probe()
    missing = ", ".join(sorted(require - capabilities.guarantees))
    if not capabilities.usable or missing:
        broken = next((finding.detail for finding in capabilities.findings if not finding.ok), "unknown reason")
        fault = f"cannot guarantee {missing}" if capabilities.usable else "is not usable here"
        raise SandboxUnavailable(f"{sandbox.name} {fault}: {broken}", capabilities.remedy)
    return capabilities


def check_needs(isolation: Isolation, *, cpu_share: bool, network: bool, channels: bool) -> None:
    """Raises SandboxUnavailable with the remedy for what a program needs and this level cannot give."""
    if cpu_share and not isolation.cpu_share:
        raise SandboxUnavailable(f"a share of a core cannot be enforced at the level {isolation.level}", _CGROUPS)
    if network and not isolation.host_network:
        raise SandboxUnavailable(f"the level {isolation.level} gives no program a network", "Use bubblewrap for that.")
    if channels and not isolation.channels:
        raise SandboxUnavailable(f"the level {isolation.level} hands no sockets down", "Use bubblewrap for that.")


def _has_cpu_controller(fingerprint: Mapping[str, str]) -> bool:
    return "cpu" in fingerprint.get("cgroup", "").rpartition(":")[2].split(",")


def _reason(sandbox: Sandbox, capabilities: Capabilities) -> str:
    return f"{sandbox.name}, which gives {', '.join(sorted(capabilities.guarantees))}"
