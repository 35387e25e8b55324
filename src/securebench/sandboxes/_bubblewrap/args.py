"""From a spec and a root layout to bubblewrap's arguments. Pure: reads nothing, opens nothing.

Rules kept here, each of them tested:

- every namespace is unshared, also where bubblewrap would make it optional; the network's but for `UNSAFE_HOST`;
- mount points are created parents first and never beneath anything that already holds foreign writable content:
  scratch directories are empty until all mounts are made (CVE-2026-87766 needs a planted link);
- `/`, `/dev` and `/proc` end read-only; the only writable places are scratch directories, `/tmp` and `/dev/shm`;
- `/proc/1` is hidden: the first process is not our program's, and holding its memory would undo the filter;
- the environment is built from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from securebench.errors import ConfigError
from securebench.sandboxes.base import Bind, Command, Network, SandboxSpec, Scratch

DEFAULT_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",  # noqa: S108  (inside the sandbox)
    "LANG": "C.UTF-8",
}

_TMP = "/tmp"  # noqa: S108  (inside the sandbox)
_HIGHEST_CHANNEL = 255
_OURS = ("/proc", "/dev", "/sys")


@dataclass(frozen=True, slots=True)
class Directory:
    path: str
    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """A host file or directory, mounted read-only."""

    source: Path
    path: str


@dataclass(frozen=True, slots=True)
class Link:
    target: str
    path: str


@dataclass(frozen=True, slots=True)
class Content:
    """A small file made of these bytes."""

    data: bytes
    path: str


@dataclass(frozen=True, slots=True)
class Hidden:
    """A directory of something mounted before, replaced by an empty one."""

    path: str


Piece = Directory | ReadOnly | Link | Content | Hidden
"""One thing a root file system is made of; a layout is a sequence of them, parents first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What `/` consists of before the mounts of the spec. `sealed`: `/` is a mount that is read-only already."""

    pieces: tuple[Piece, ...]
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The inherited descriptors bubblewrap talks through. All are closed before the command starts."""

    status: int
    arrived: int
    seccomp: int


def check_mounts(spec: SandboxSpec) -> None:
    """Refuse mount targets that collide with what every sandbox has. Raises ConfigError."""
    for mount in spec.mounts:
        target = PurePosixPath(mount.target)
        if target == PurePosixPath("/"):
            raise ConfigError("a sandbox mount cannot replace /; use DirectoryRoot")
        for name in (*_OURS, _TMP):
            ours = PurePosixPath(name)
            if ours in target.parents or (target == ours and name != _TMP):
                raise ConfigError(f"sandbox mount {target} lies in {name}, which the sandbox provides itself")


def check_command(command: Command) -> None:
    """Refuse a command the kernel cannot be given. Raises ConfigError."""
    words = (*command.argv, command.cwd or "/")
    if not command.argv or not command.argv[0] or any("\0" in word for word in words):
        raise ConfigError("a sandbox command needs a program, and its words cannot hold a NUL byte")
    if not PurePosixPath(command.cwd or "/").is_absolute():
        raise ConfigError(f"sandbox working directory {command.cwd!r} must be absolute")
    if any(number not in (0, 1) and not 3 <= number <= _HIGHEST_CHANNEL for number in command.channels):
        raise ConfigError(f"a sandbox channel needs a descriptor number: 0, 1 or from 3 to {_HIGHEST_CHANNEL}")
    if command.stdin and 0 in command.channels:
        raise ConfigError("a sandbox command has either a channel 0 or bytes for its standard input")


def environment(spec: SandboxSpec, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The complete environment of a command. Raises ConfigError on a name or value the kernel cannot carry."""
    env = {**DEFAULT_ENV, **spec.env, **(extra or {})}
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise ConfigError(f"sandbox environment variable {name!r} cannot be set")
    return env


def namespace_args(*, disable_userns: bool, network: Network = Network.NONE) -> list[str]:
    """The walls: namespaces, session, life time, no capabilities."""
    args = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"]
    if network is not Network.UNSAFE_HOST:
        args.append("--unshare-net")
    args += ["--hostname", "sandbox", "--new-session", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"]
    if disable_userns:
        args.append("--disable-userns")
    return args


def file_system_args(
    spec: SandboxSpec, layout: Layout, fd_for: Callable[[bytes], int], *, forks: bool = False
) -> list[str]:
    """Everything mounted or made. `fd_for` turns the bytes of a `Content` into an inherited descriptor.

    `forks` is for a fork server of ours and nobody else: the kernel lets its processes mount a `/proc` of their own
    only where the one they leave behind is whole."""
    args: list[str] = []
    for piece in layout.pieces:
        args += _piece(piece, fd_for)
    args += ["--proc", "/proc", *([] if forks else _tmpfs("/proc/1", 4096, 0o555)), "--dev", "/dev"]
    args += _tmpfs("/dev/shm", spec.limits.tmp, 0o1777)  # noqa: S108
    if not any(PurePosixPath(mount.target) == PurePosixPath(_TMP) for mount in spec.mounts):
        args += _tmpfs(_TMP, spec.limits.tmp, 0o1777)
    for mount in sorted(spec.mounts, key=lambda mount: mount.target):
        args += _mount(mount)
    sealed = [*([] if forks else ["/proc"]), "/dev", *([] if layout.sealed else ["/"])]
    for path in sealed:
        args += ["--remount-ro", path]
    return args


def _piece(piece: Piece, fd_for: Callable[[bytes], int]) -> Iterable[str]:
    if isinstance(piece, Directory):
        return ("--perms", f"{piece.mode:o}", "--dir", piece.path)
    if isinstance(piece, ReadOnly):
        return ("--ro-bind", str(piece.source), piece.path)
    if isinstance(piece, Hidden):
        return (*_tmpfs(piece.path, 4096, 0o555), "--remount-ro", piece.path)
    if isinstance(piece, Link):
        return ("--symlink", piece.target, piece.path)
    return ("--perms", "444", "--file", str(fd_for(piece.data)), piece.path)


def _mount(mount: Bind | Scratch) -> Iterable[str]:
    if isinstance(mount, Bind):
        return ("--ro-bind", str(mount.source), mount.target)
    return _tmpfs(mount.target, mount.size, 0o755)


def _tmpfs(path: str, size: int, mode: int) -> list[str]:
    return ["--perms", f"{mode:o}", "--size", str(max(size, 1)), "--tmpfs", path]


def command_args(spec: SandboxSpec, env: Mapping[str, str], cwd: str, fds: Descriptors) -> list[str]:
    """Who runs, where, with which environment, and how we hold it at the gate."""
    args = ["--uid", str(spec.user), "--gid", str(spec.user), "--chdir", cwd]
    for name, value in sorted(env.items()):
        args += ["--setenv", name, value]
    args += ["--json-status-fd", str(fds.status), "--block-fd", str(fds.arrived), "--seccomp", str(fds.seccomp)]
    return args
