"""What bubblewrap really gives on this host: seen by running it, explained with the remedy where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from securebench.errors import InfrastructureError, SandboxUnavailable
from securebench.sandboxes._bubblewrap.cgroups import find_controllers
from securebench.sandboxes._bubblewrap.direct import run_direct
from securebench.sandboxes._bubblewrap.host import Host, find_host
from securebench.sandboxes._bubblewrap.identity import Identity, dropping
from securebench.sandboxes._seccomp import build_filter
from securebench.sandboxes.base import (
    ISOLATED,
    MIB,
    Capabilities,
    Command,
    Finding,
    Guarantee,
    Limits,
    Network,
    SandboxResult,
    SandboxSpec,
)

# Prints `name value` lines; shell built-ins and cat only, because the probe must be quick.
_LOOK = r"""
while read -r key value rest; do
  case $key in CapEff:|CapBnd:|NoNewPrivs:|Seccomp:|Uid:) echo "$key$value";; esac
done < /proc/self/status
for p in /proc/[0-9]*; do n="$n ${p#/proc/}"; done; echo "pids:$n"
(: > /probe) 2>/dev/null && echo "root:writable" || echo "root:sealed"
[ -e /root ] || [ -e /home ] && echo "host:visible" || echo "host:hidden"
: > /tmp/probe && echo "tmp:writable"
while read -r name rest; do case $name in *:) echo "interface:$name";; esac; done < /proc/net/dev
"""
_FILL = "exec 2>/dev/null; head -c 67108864 /dev/zero > /dev/shm/fill"


async def probe_bubblewrap() -> tuple[Host | None, Capabilities]:
    """The host's programs and what they were seen to guarantee. Never raises for a host that lacks something."""
    try:
        host = await find_host()
    except SandboxUnavailable as missing:
        finding = Finding("bubblewrap", ok=False, detail=str(missing).splitlines()[0], remedy=missing.remedy)
        return None, Capabilities(usable=False, guarantees=frozenset(), findings=(finding,), fingerprint={})
    fingerprint = _fingerprint(host)
    try:
        seen = await run_direct(host, SandboxSpec(limits=Limits(wall_seconds=60)), _sh(_LOOK), frozenset())
    except InfrastructureError as error:
        finding = Finding("sandbox", ok=False, detail=str(error), remedy=remedy_for(str(error)))
        return host, Capabilities(usable=False, guarantees=frozenset(), findings=(finding,), fingerprint=fingerprint)
    findings = [Finding("bubblewrap", ok=True, detail=f"{host.bwrap} {host.version}"), *_judge(seen)]
    usable = all(finding.ok for finding in findings)
    guarantees = ISOLATED if usable else frozenset()
    memory = await _memory(host) if usable else None
    if memory is not None:
        findings.append(memory)
        guarantees |= {Guarantee.MEM_HARD} if memory.ok else frozenset()
    findings.append(_user())
    return host, Capabilities(usable, guarantees, tuple(findings), fingerprint)


def _fingerprint(host: Host) -> Mapping[str, str]:
    controllers = find_controllers()
    rules = build_filter(Network.NONE, deny_unaccounted=controllers is None)
    return host.fingerprint(Identity(0 if dropping() else None), rules.sha256)


def _sh(script: str) -> Command:
    return Command(("/bin/sh", "-c", script))


def _judge(seen: SandboxResult) -> list[Finding]:
    """Compare what the program saw inside with what must be so."""
    lines = seen.stdout.data.decode("ascii", "replace").splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    interfaces = sorted(line for line in lines if line.startswith("interface:"))
    expected = {
        "file system": ("root", facts.get("root") == "sealed" and facts.get("tmp") == "writable"),
        "nothing personal visible": ("host", facts.get("host") == "hidden"),
        "own processes only": ("pids", set(facts.get("pids", "0").split()) <= {"1", "2", "3", "4"}),
        "no capabilities": ("CapEff", {facts.get(name, "?").strip("0") for name in ("CapEff", "CapBnd")} == {""}),
        "no new privileges": ("NoNewPrivs", facts.get("NoNewPrivs") == "1"),
        "system call filter": ("Seccomp", facts.get("Seccomp") == "2"),
        "no network interface but loopback": ("interface", interfaces == ["interface:lo:"]),
    }  # fmt: skip
    remedy = "Report this: bubblewrap ran but a wall is missing on this host."
    return [
        Finding(name, ok=ok, detail=f"{key}: {facts.get(key, 'not seen')}", remedy="" if ok else remedy)
        for name, (key, ok) in expected.items()
    ]


async def _memory(host: Host) -> Finding:
    """Whether a memory limit bites, shown by exceeding one through shared memory, which only a group counts."""
    controllers = find_controllers()
    name = "hard memory limit"
    if controllers is None:
        return Finding(name, ok=False, detail="no control group can be made here", remedy=_DELEGATE)
    spec = SandboxSpec(limits=Limits(wall_seconds=60, memory=16 * MIB, tmp=64 * MIB))
    try:
        seen = await run_direct(host, spec, _sh(_FILL), frozenset())
    except InfrastructureError as error:
        return Finding(name, ok=False, detail=str(error), remedy=_DELEGATE)
    detail = f"control group {controllers.mode}: exceeding the limit ended as {seen.outcome}"
    return Finding(name, ok=seen.oom, detail=detail, remedy="" if seen.oom else _DELEGATE)


def _user() -> Finding:
    if dropping():
        return Finding("kernel user", ok=True, detail="every sandbox drops to a user id of its own")
    return Finding("kernel user", ok=True, detail="sandboxes run as the user who started SecureBench")


_DELEGATE = "Run as root, or give this session control groups: systemd-run --user --scope -p Delegate=yes securebench …"
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_LIMIT = Path("/proc/sys/user/max_user_namespaces")
_CLONE = Path("/proc/sys/kernel/unprivileged_userns_clone")


def remedy_for(complaint: str) -> str:
    """What to do about bubblewrap's own words, judged together with this kernel's switches."""
    if _read(_APPARMOR) == "1":
        return (
            "Ubuntu's AppArmor forbids user namespaces to unlisted programs. Allow bubblewrap: install the package "
            "apparmor-profiles and load its bwrap-userns-restrict profile, or: "
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if _read(_CLONE) == "0":
        return "This kernel has user namespaces switched off: sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if _read(_LIMIT) == "0" or "No space left" in complaint:
        return "This kernel allows no further user namespaces: sudo sysctl -w user.max_user_namespaces=15000"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return (
            "Inside a container: start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined, or use the docker backend on the host."
        )
    return "See that user namespaces work for this user: unshare --user --map-root-user true"


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""
