"""From a spec to the words of `docker create`. Pure: reads nothing, starts nothing.

Rules kept here, each of them tested:

- every container has the same walls: no network but its own loopback or its session's, no capabilities but those the
  spec names, no new privileges, read-only root, memory without swap, process limit, private IPC, our seccomp profile,
  no logs on the host's disk;
- nothing is pulled; the image is named by its id; its entry point, user, health check and volumes are overruled;
- the only writable places are scratch directories, `/tmp` and `/dev/shm`, each with a size;
- values of the environment are not in the words, which every user of the host can read, but in a file of their own;
- nothing of the spec can be taken for an option.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes._bubblewrap.args import DEFAULT_ENV
from securebench.sandboxes._docker.channels import INPUT
from securebench.sandboxes._docker.image import Image
from securebench.sandboxes._docker.owner import ROLE
from securebench.sandboxes.base import MIB, Bind, Command, Limits, Network, SandboxSpec

TMP = "/tmp"  # noqa: S108  (inside the sandbox)
OWN_PROCESSES = 1
"""The first process of a container is the engine's init, which forwards the exit code and reaps."""
RUNTIME_PROCESSES = 128
"""A runtime with a kernel of its own runs that kernel's threads inside the limits of the container."""

_LEAST_MEMORY = 6 * MIB  # engines refuse less
_FILE_FLOOR = 64 * 1024
_DESCRIPTOR_FLOOR = 16
_ENV_LINE = 32 * 1024  # clients read env files line by line, with a limit

# What the engines add by themselves, or their clients from the operator's configuration.
_PROXIES = tuple(f"{name}_proxy" for name in ("http", "https", "ftp", "no", "all"))
_UNWANTED = ("HOSTNAME", "container", *_PROXIES, *(name.upper() for name in _PROXIES))

# Capabilities that change what a program may do to its own container only.
CONFINED_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
        "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """What is the same for all containers of one session."""

    image: Image
    labels: Mapping[str, str]
    seccomp: Path
    runtime: str | None = None
    ipv6: bool = False
    hide_resolver: bool = True  # Docker shows the host's resolver even without a network; Podman does not
    group: str | None = None  # the control group containers are made in; None for the engine's own choice
    held: Mapping[str, str] = field(default_factory=dict)
    """Volumes a holder keeps: target -> name."""
    network: str | None = None
    """The id of the holder whose network namespace commands share; None for one of their own."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a holder runs instead of the image's shell; it must wait until its standard input ends."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    binds: tuple[Bind, ...]


def capabilities_of(spec: SandboxSpec) -> frozenset[str]:
    """The capabilities a spec adds, without prefix. Raises SandboxUnavailable for those that undo the walls."""
    names = frozenset(name.upper().removeprefix("CAP_") for name in spec.capabilities)
    if refused := names - CONFINED_CAPABILITIES:
        raise SandboxUnavailable(
            f"a container with capability {', '.join(sorted(refused))} would not be confined",
            f"Ask for none, or only for these: {', '.join(sorted(CONFINED_CAPABILITIES))}.",
        )
    return names


def environment(spec: SandboxSpec, image: Image, extra: Mapping[str, str]) -> dict[str, str]:
    """The complete environment of a command: ours, then the image's, the spec's, the command's. Raises ConfigError."""
    env = {**DEFAULT_ENV, **dict(image.env), **spec.env, **extra}
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or "\0" in value or name.startswith(("#", " ", "\t")):
            raise ConfigError(f"sandbox environment variable {name!r} cannot be set")
    return env


def environment_args(env: Mapping[str, str]) -> tuple[list[str], bytes]:
    """(words, content of the env file on standard input) that give a container exactly this environment."""
    words = ["--env-file=/dev/stdin"]
    lines = []
    for name, value in sorted(env.items()):
        line = f"{name}={value}"
        # A file of lines cannot carry everything; what it cannot goes on the command line.
        if len(line) > _ENV_LINE or not line.isprintable() or name.strip() != name or value.strip() != value:
            words.append(f"--env={line}")
        else:
            lines.append(f"{line}\n")
    # A bare name that the client does not have itself is removed, also if image or engine set it.
    words += [f"--env={name}" for name in _UNWANTED if name not in env]
    return words, "".join(lines).encode("utf-8", "surrogateescape")


def create_args(place: Place, spec: SandboxSpec, command: Command, name: str) -> tuple[list[str], bytes]:
    """(words after `docker`, standard input) for the container of one command. Raises ConfigError."""
    env_words, env_file = environment_args(environment(spec, place.image, command.env))
    words = ["create", f"--name={name}", *walls(place, spec.limits), f"--user={spec.user}:{spec.user}"]
    words.append(f"--label={ROLE}=command")
    words += [f"--cap-add={name}" for name in sorted(capabilities_of(spec))]
    words += [f"--workdir={_workdir(command.cwd or spec.cwd)}", *env_words]
    if command.stdin or INPUT in command.numbers:
        words.append("--interactive")
    if place.network is None:
        words += _loopback(place, spec)
    covered = {mount.target for mount in spec.mounts}
    # By name and not by --volumes-from, which fails when the holder has anything mounted that is no volume.
    # Not filled from the image, which would also make it the owner.
    for path, volume in place.held.items():
        words.append(f"--mount={_csv(['type=volume', f'src={volume}', f'dst={path}', 'volume-nocopy'])}")
    covered |= set(place.held)
    if TMP not in covered:
        words.append(f"--tmpfs={TMP}:rw,exec,nosuid,nodev,size={spec.limits.tmp},mode=1777")
    words += [_bind(mount) for mount in spec.mounts if isinstance(mount, Bind)]
    words += _declared_volumes(place.image, covered)
    words += [f"--entrypoint={command.argv[0]}", place.image.id, *command.argv[1:]]
    return words, env_file


def holder_args(place: Place, spec: SandboxSpec, name: str, program: Program | None = None) -> tuple[list[str], bytes]:
    """(words, standard input) for the container that keeps scratch directories and network of a session.

    It never runs anything of the spec; `program` is ours."""
    limits = Limits(memory=64 * MIB, pids=8, tmp=MIB)
    words = [
        "run",
        "--detach",
        "--interactive",
        f"--name={name}",
        *walls(place, limits),
        "--user=65534:65534",
        "--workdir=/",
    ]
    writable = {scratch.target: (scratch.size, "0755") for scratch in spec.scratches}
    if not any(mount.target == TMP for mount in spec.mounts):
        writable[TMP] = (spec.limits.tmp, "1777")
    words += [_memory_volume(target, size, mode, spec.user, place) for target, (size, mode) in writable.items()]
    words += _declared_volumes(place.image, set(writable))
    words.append(f"--label={ROLE}=holder")
    if program is None:
        # It waits for a line that never comes; the shell's own `read` needs no other program of the image.
        return [*words, "--entrypoint=/bin/sh", place.image.id, "-c", "read -r _"], b""
    # Nothing the image says may change how our program runs.
    env = {**{variable: "" for variable, _ in place.image.env}, **DEFAULT_ENV, **program.env}
    env_words, env_file = environment_args(env)
    words += [*env_words, *map(_bind, program.binds), *_loopback(place, spec)]
    return [*words, f"--entrypoint={program.argv[0]}", place.image.id, *program.argv[1:]], env_file


def walls(place: Place, limits: Limits) -> list[str]:
    """What every container of ours has, whatever runs in it."""
    memory = max(limits.memory, _LEAST_MEMORY)
    files = max(limits.open_files, _DESCRIPTOR_FLOOR)
    size = max(limits.file_size, _FILE_FLOOR)
    words = [
        "--pull=never",
        "--init",
        "--read-only",
        *_network(place),
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        f"--security-opt=seccomp={place.seccomp}",
        "--ipc=private",
        f"--shm-size={max(limits.tmp, 1)}",
        "--log-driver=none",
        "--no-healthcheck",
        "--restart=no",
        f"--memory={memory}",
        f"--memory-swap={memory}",
        f"--pids-limit={limits.pids + OWN_PROCESSES + (RUNTIME_PROCESSES if place.runtime else 0)}",
        "--ulimit=core=0:0",
        f"--ulimit=nofile={files}:{files}",
        f"--ulimit=fsize={size}:{size}",
    ]
    if limits.cpus is not None:
        words.append(f"--cpus={limits.cpus:g}")
    if limits.cpu_seconds is not None:
        seconds = max(1, math.ceil(limits.cpu_seconds))
        words.append(f"--ulimit=cpu={seconds}:{seconds + 1}")
    if place.runtime is not None:
        words.append(f"--runtime={place.runtime}")
    if place.group is not None:
        words.append(f"--cgroup-parent={place.group}")
    return words + [f"--label={name}={value}" for name, value in place.labels.items()]


def _network(place: Place) -> list[str]:
    if place.network is not None:
        return [f"--network=container:{place.network}"]  # and with it the holder's host name and resolver
    resolver = ["--dns=0.0.0.0", "--dns-search=."] if place.hide_resolver else []
    return ["--network=none", "--hostname=sandbox", *resolver]


def _loopback(place: Place, spec: SandboxSpec) -> list[str]:
    """For the container that makes a network namespace: engines turn IPv6 off where there is no network."""
    wanted = place.ipv6 and spec.network is Network.LOOPBACK
    return ["--sysctl=net.ipv6.conf.all.disable_ipv6=0"] if wanted else []


def _workdir(path: str) -> str:
    parts = PurePosixPath(path).parts
    if len(parts) > 1 and parts[1] in ("proc", "sys", "dev"):
        # CVE-2024-21626: a working directory there can be a leaked descriptor of the host.
        raise ConfigError(f"a sandbox command cannot start in {path}")
    return path


def _bind(mount: Bind) -> str:
    fields = ["type=bind", f"src={mount.source}", f"dst={mount.target}", "readonly", "bind-nonrecursive"]
    return f"--mount={_csv(fields)}"


def _memory_volume(target: str, size: int, mode: str, user: int, place: Place) -> str:
    """An anonymous volume in memory: it goes with the last container that has it."""
    options = f"size={max(size, 4096)},mode={mode},uid={user},gid={user},nosuid,nodev"
    fields = ["type=volume", f"dst={target}", "volume-driver=local", "volume-opt=type=tmpfs", "volume-opt=device=tmpfs"]
    fields += [f"volume-label={name}={value}" for name, value in place.labels.items()]
    return f"--mount={_csv([*fields, f'volume-opt=o={options}'])}"


def _declared_volumes(image: Image, covered: set[str]) -> list[str]:
    """Empty and read-only. Left alone, a VOLUME of the image is writable, on the host's disk and without a limit."""
    options = "tmpfs-size=4096,tmpfs-mode=0555,readonly"
    return [f"--mount={_csv(['type=tmpfs', f'dst={path}'])},{options}" for path in image.volumes if path not in covered]


def _csv(fields: Sequence[str]) -> str:
    quoted = []
    for item in fields:
        if "\n" in item or "\r" in item:
            raise ConfigError(f"sandbox mount {item!r} has a line break in its path")
        quoted.append('"' + item.replace('"', '""') + '"' if any(mark in item for mark in ',"') else item)
    return ",".join(quoted)
