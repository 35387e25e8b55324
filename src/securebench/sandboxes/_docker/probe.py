"""What a container engine can do on this host, seen by running throw-away containers with the walls of real ones.

Each guarantee is advertised because an attempt against it failed: to write outside, to see other processes, to find
a network interface, to use more memory than allowed. The program that tries needs only the image's shell.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio

from securebench.errors import InfrastructureError, SandboxError, SandboxUnavailable
from securebench.sandboxes._docker.accounts import Ledger
from securebench.sandboxes._docker.client import Client, find_client
from securebench.sandboxes._docker.image import Image, resolve
from securebench.sandboxes._docker.session import Engine, open_session
from securebench.sandboxes.base import (
    MIB,
    Capabilities,
    Command,
    Finding,
    Guarantee,
    ImageRoot,
    Limits,
    Network,
    Outcome,
    SandboxResult,
    SandboxSpec,
    Scratch,
)

_DAEMON_SECONDS = 20.0
_PROBE_SECONDS = 90.0
_MOST_IMAGES = 3

# Uses nothing but the shell: `read`, `echo`, redirections and globs.
_LOOK = r"""
(: >/securebench-probe) 2>/dev/null && echo wrote
(: >/tmp/probe) 2>/dev/null && echo tmp
set -- /proc/[0-9]*; echo "processes $#"
while read -r line; do case $line in *:*) echo "interface ${line%%:*}";; esac; done </proc/net/dev
while read -r name value _; do
    case $name in CapEff:|NoNewPrivs:|Seccomp:) echo "$name $value";; esac
done </proc/self/status
read -r _ _ release _ </proc/version; echo "release $release"
"""
_EAT = 'x=0123456789abcdef; while :; do x="$x$x"; done'


@dataclass(frozen=True, slots=True)
class Probed:
    """`engine` is None when nothing is usable."""

    engine: Engine | None
    capabilities: Capabilities


async def probe_engine(engine: str | None, runtime: str | None) -> Probed:
    """Look at the engine asked for, or the first installed. Never raises for what a host may lack."""
    try:
        client = find_client(engine)
        versions = await _versions(client)
    except SandboxUnavailable as error:
        return _unusable(Finding("engine", False, str(error).splitlines()[0], error.remedy))
    except InfrastructureError as error:
        return _unusable(Finding("engine", False, str(error), "Restart the container engine's daemon."))
    findings = [Finding("engine", True, " ".join(f"{name} {version}" for name, version in versions.items()))]
    notes = _known_holes(versions)  # after what makes the engine unusable, if anything does
    candidate = Engine(client, runtime, frozenset(), versions)
    candidate, seen, problem = await _try_images(candidate)
    if seen is None:
        return _unusable(*findings, problem or NO_IMAGE, *notes)
    guarantees = frozenset(guarantee for guarantee, finding in seen.items() if finding.ok)
    findings += [finding for guarantee, finding in seen.items() if guarantee is not Guarantee.KERNEL or runtime]
    walls = {Guarantee.FS, Guarantee.PID, Guarantee.NET} <= guarantees
    capabilities = Capabilities(walls, guarantees, (*findings, *notes), versions)
    return Probed(replace(candidate, guarantees=guarantees) if walls else None, capabilities)


NO_IMAGE = Finding(
    "image",
    False,
    "there is no local image to try a container with",
    "Get one: docker pull IMAGE, or in a checkout: scripts/ci-docker.",
)


def _unusable(*findings: Finding) -> Probed:
    return Probed(None, Capabilities(False, frozenset(), findings, {}))


async def _versions(client: Client) -> Mapping[str, str]:
    found = await client.ask_json(
        "asking the engine for its version", ["version", "--format={{json .}}"], timeout=_DAEMON_SECONDS
    )
    server = found.get("Server") if isinstance(found, Mapping) else None
    if not isinstance(server, Mapping):
        server = found.get("Client", {}) if isinstance(found, Mapping) else {}  # podman has no daemon
    versions = {client.engine: str(server.get("Version", "unknown"))}
    for component in server.get("Components") or ():
        name = str(component.get("Name", "")).lower()
        if name in ("runc", "crun", "containerd"):
            versions[name] = str(component.get("Version", "unknown"))
    return versions


def _known_holes(versions: Mapping[str, str]) -> list[Finding]:
    version = versions.get("runc")
    if version is None or (numbers := parse_version(version)) is None:
        return []
    fixed = numbers >= (1, 2, 8) if numbers < (1, 3, 0) else numbers >= (1, 3, 3)
    if fixed:
        return []
    said = (
        f"runc {version} is older than 1.2.8 (1.3.3) and may lack the fixes for CVE-2025-31133, CVE-2025-52565 and "
        "CVE-2025-52881; packs cannot choose mounts or the start of the path, which these need"
    )
    return [Finding("runc", False, said, "Update runc, or use the runsc runtime for hostile code.")]


def parse_version(text: str) -> tuple[int, int, int] | None:
    """The three numbers a version begins with."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


async def _try_images(engine: Engine) -> tuple[Engine, dict[Guarantee, Finding] | None, Finding | None]:
    """What was seen with the first local image it works with; else what went wrong. None, None without any image."""
    problem: Finding | None = None
    for image in await _local_images(engine.client):
        try:
            with anyio.fail_after(_PROBE_SECONDS):
                return *(await _look(engine, image)), None
        except TimeoutError:
            said = f"a throw-away container did not end within {_PROBE_SECONDS:g} s"
            return engine, None, Finding("container", False, said, "Restart the daemon, or choose another runtime.")
        except SandboxUnavailable as error:
            problem = Finding("container", False, str(error).splitlines()[0], error.remedy)
        except InfrastructureError as error:
            remedy = "Look at the daemon's log; `docker run --rm IMAGE true` should work."
            problem = Finding("container", False, str(error), remedy)
    return engine, None, problem


async def _local_images(client: Client) -> list[Image]:
    """Some local images, newest first."""
    with suppress(InfrastructureError):
        text = await client.ask("listing images", ["image", "ls", "--quiet", "--no-trunc"])
        identities = list(dict.fromkeys(text.split()))[:_MOST_IMAGES]
        return [await resolve(client, identity) for identity in identities]
    return []


async def _look(engine: Engine, image: Image) -> tuple[Engine, dict[Guarantee, Finding]]:
    async def run(script: str, memory: int, *mounts: Scratch) -> tuple[SandboxResult, Ledger | None]:
        limits = Limits(wall_seconds=20, memory=memory, pids=32, tmp=MIB)
        spec = SandboxSpec(root=ImageRoot(image.reference), mounts=mounts, network=Network.LOOPBACK, limits=limits)
        async with open_session(engine, spec, image) as session:
            ledger = session.ledger() if mounts else None
            return await session.run(Command(("/bin/sh", "-c", script))), ledger

    looked, ledger = await run(_LOOK, 128 * MIB, Scratch("/securebench", MIB))
    if looked.exit_code == 127:
        raise SandboxError(f"image {image.reference} has no /bin/sh")
    engine = replace(engine, ledger=ledger)  # `run` uses it too: what a container ate is known better with it
    eaten, _ = await run(_EAT, 64 * MIB)
    return engine, judge(looked.stdout.data.decode("utf-8", "replace"), eaten.outcome)


def judge(text: str, eaten: Outcome, release: str = "") -> dict[Guarantee, Finding]:
    """What the attempts showed. `release` is the kernel of the host."""
    lines = text.splitlines()
    facts = {name: value for name, _, value in (line.partition(" ") for line in lines)}
    interfaces = [line.split()[1] for line in lines if line.startswith("interface ")]
    processes = int(facts["processes"]) if facts.get("processes", "").isdigit() else 0
    other = facts.get("release", "") not in ("", release or platform.release())
    # A kernel of its own need not have these two, nor show them.
    unprivileged = facts.get("CapEff:", "x").strip("0") == "" and (other or facts.get("NoNewPrivs:") == "1")
    filtered = other or facts.get("Seccomp:") == "2"
    again = "The engine does not apply what it is asked for; look at its configuration."
    rows = {
        Guarantee.FS: ("wrote" not in lines and "tmp" in lines and unprivileged, "root is read-only, no capabilities"),
        Guarantee.PID: (0 < processes <= 4, f"{processes} processes are visible"),
        Guarantee.NET: (interfaces == ["lo"] and filtered, f"interfaces: {', '.join(interfaces) or 'unknown'}"),
        Guarantee.MEM_HARD: (eaten is Outcome.OUT_OF_MEMORY, f"a program that eats memory ended as {eaten}"),
        Guarantee.KERNEL: (other, f"the kernel inside is {facts.get('release', 'unknown')}"),
    }
    return {
        guarantee: Finding(guarantee.value, ok, said, "" if ok else again) for guarantee, (ok, said) in rows.items()
    }
