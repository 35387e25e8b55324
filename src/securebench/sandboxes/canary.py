"""A probe that runs inside any sandbox and says what it sees, compared with what must be so.

The program is plain shell with built-ins and `cat`, `ls`, `readlink`: it must run in any image. It runs before any
untrusted code does, so what it prints can be believed. Rules, by guarantee:

- always: not user 0, no capability beyond those asked for, no new privileges, a system call filter, no inherited
  descriptor, only the variables the spec gives;
- `fs`: `/` cannot be written, nothing of the host's homes, sockets or devices is there, writable places are scratch
  directories and temporary ones only;
- `pid`: PID namespace of its own, no host process visible;
- `net`: network namespace of its own, no interface but loopback, no route.

A kernel of its own (`kernel`, as the backend's probe saw it) shows neither the host's filter nor namespaces of the
host's; there they are what stands between that kernel and the host, and cannot be seen from inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from securebench.sandboxes.base import Command, Guarantee, Sandbox, SandboxSpec, run_once

# Prints `key value` lines.
SCRIPT = r"""
while read -r key value rest; do
  case $key in Uid:|Gid:|CapEff:|CapPrm:|CapBnd:|CapAmb:|NoNewPrivs:|Seccomp:) echo "status.${key%:} $value";; esac
done < /proc/self/status
for ns in user pid net ipc uts mnt cgroup; do echo "ns.$ns $(readlink /proc/self/ns/$ns)"; done
for p in /proc/[0-9]*; do [ -e "$p/comm" ] && echo "process $(cat $p/comm 2>/dev/null)"; done
for fd in /proc/$$/fd/*; do case ${fd##*/} in 0|1|2) ;; *) [ -L "$fd" ] && echo "fd ${fd##*/}";; esac; done
while read -r name rest; do case $name in *:) echo "interface ${name%:}";; esac; done < /proc/net/dev
while read -r name rest; do case $name in Iface) ;; *) echo "route $name";; esac; done < /proc/net/route
for path in / /etc /usr /usr/bin /root /home /var /opt /proc/sys /sys /boot; do
  file="$path/.securebench-canary"
  [ -e "$path" ] && (: > "$file") 2>/dev/null && rm "$file" && echo "writable $path"
done
for path in /root /home /var/run/docker.sock /run/docker.sock /etc/shadow /dev/kvm /dev/mem /dev/sda /dev/vda \
  /dev/kmsg /run/systemd /run/dbus /sys/firmware; do
  [ -r "$path" ] && [ -n "$(ls -A "$path" 2>/dev/null)" ] && echo "visible $path"
done
echo "hostname $(cat /proc/sys/kernel/hostname)"
env | while IFS='=' read -r name value; do echo "variable $name"; done
echo "end ok"
"""

_SHELL_VARIABLES = {"PWD", "OLDPWD", "SHLVL", "_", "PATH", "HOME", "LANG", "HOSTNAME", "container"}
_PERSONAL = ("/root", "/home", "/run/", "/var/run/", "/etc/shadow", "/dev/", "/sys/")


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the probe saw: single facts by name, and lists of things."""

    facts: Mapping[str, str]
    things: Mapping[str, tuple[str, ...]]


def read_sighting(text: str) -> Sighting:
    """Parse the probe's output. Lines that are not `key value` are ignored; `complete` fails then."""
    facts: dict[str, str] = {}
    things: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key in {"process", "fd", "interface", "route", "writable", "visible", "variable"}:
            things.setdefault(key, []).append(value)
        elif key:
            facts[key] = value
    return Sighting(facts, {key: tuple(values) for key, values in things.items()})


def host_namespaces() -> dict[str, str]:
    """Our own namespaces, which no sandbox may share where it must have its own."""
    return {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("pid", "net", "ipc", "uts", "mnt")}


def violations(seen: Sighting, spec: SandboxSpec, ours: Mapping[str, str], own_kernel: bool = False) -> Iterator[str]:
    """Everything that is not as the spec's guarantees say. Pure."""
    if seen.facts.get("end") != "ok":
        yield "the probe did not finish"
        return
    yield from _privileges(seen, spec, own_kernel)
    if own_kernel:
        ours = {name: ours[name] for name in ours if seen.facts.get(f"ns.{name}")}
    if Guarantee.FS in spec.require:
        yield from _file_system(seen, ours)
    if Guarantee.PID in spec.require:
        yield from _shared(seen, ours, "pid")
        if hosts := set(seen.things.get("process", ())) & {"systemd", "init", "dockerd", "sshd", "securebench"}:
            yield f"host processes are visible: {', '.join(sorted(hosts))}"
    if Guarantee.NET in spec.require:
        yield from _shared(seen, ours, "net")
        if others := set(seen.things.get("interface", ())) - {"lo"}:
            yield f"network interfaces besides loopback: {', '.join(sorted(others))}"
        if seen.things.get("route"):
            yield "there is a route"


def _privileges(seen: Sighting, spec: SandboxSpec, own_kernel: bool) -> Iterator[str]:
    facts = seen.facts
    if facts.get("status.Uid", "0") == "0":
        yield "runs as user 0"
    # Another kernel need not have all of these, but what it has must be as it must be.
    required = ("CapEff", "CapPrm") if own_kernel else _CAPABILITY_SETS
    sets = {name: facts[f"status.{name}"].strip("0") for name in _CAPABILITY_SETS if f"status.{name}" in facts}
    if not spec.capabilities and (any(sets.values()) or not set(required) <= set(sets)):
        yield "has capabilities"
    if facts.get("status.NoNewPrivs", "1" if own_kernel else "") != "1":
        yield "may gain new privileges"
    if not own_kernel and facts.get("status.Seccomp") != "2":
        yield "has no system call filter"
    if inherited := seen.things.get("fd"):
        yield f"inherited descriptors: {', '.join(inherited)}"
    if extra := set(seen.things.get("variable", ())) - set(spec.env) - _SHELL_VARIABLES:
        yield f"variables nobody asked for: {', '.join(sorted(extra))}"


_CAPABILITY_SETS = ("CapEff", "CapPrm", "CapAmb")


def _file_system(seen: Sighting, ours: Mapping[str, str]) -> Iterator[str]:
    yield from _shared(seen, ours, "mnt")
    if writable := seen.things.get("writable"):
        yield f"writable: {', '.join(writable)}"
    if visible := [path for path in seen.things.get("visible", ()) if path.startswith(_PERSONAL)]:
        yield f"visible: {', '.join(visible)}"


def _shared(seen: Sighting, ours: Mapping[str, str], name: str) -> Iterator[str]:
    if name not in ours:
        return
    theirs = seen.facts.get(f"ns.{name}")
    if not theirs or theirs == ours[name]:
        yield f"shares the host's {name} namespace"


async def run_canary(sandbox: Sandbox, spec: SandboxSpec) -> list[str]:
    """Run the probe in a sandbox of this spec; what is not as it must be. Raises SandboxError, SandboxUnavailable."""
    result = await run_once(sandbox, spec, Command(("/bin/sh", "-c", SCRIPT), wall_seconds=20))
    seen = read_sighting(result.stdout.data.decode("utf-8", "replace"))
    return list(violations(seen, spec, host_namespaces(), Guarantee.KERNEL in result.guarantees))
