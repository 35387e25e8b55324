"""What the root directory of a sandbox is made of, looked up on this host.

`HostRoot` is the host's programs and libraries and an `/etc` written here. `DirectoryRoot` is one read-only mount
where the directory has every mount point the spec needs; where one is missing, the directories on the way to it are
rebuilt from mounts of their entries, because nothing can be created in a read-only directory.
"""

from __future__ import annotations

import stat
from functools import cache
from pathlib import Path, PurePosixPath

from securebench.errors import ConfigError
from securebench.sandboxes._bubblewrap.args import Content, Directory, Hidden, Layout, Link, Piece, ReadOnly
from securebench.sandboxes._bubblewrap.limits import FILE_FLOOR
from securebench.sandboxes.base import HOST_ROOT_PATHS, DirectoryRoot, HostRoot, Network, SandboxSpec

_PROGRAMS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Small files are copied and directories mounted: a mount costs bubblewrap half a millisecond, a copy nothing.
_ETC = ("ld.so.cache", "ssl/openssl.cnf", "alternatives", "ssl/certs", "pki/ca-trust/extracted", "pki/tls/certs")
_ETC_GLOBS = ("java-*-openjdk",)  # Debian's JVM reads its configuration through links into /etc
_BUILT_IN = ("/proc", "/dev", "/tmp")  # noqa: S108  (inside the sandbox)


def layout_for(spec: SandboxSpec) -> Layout:
    """The pieces of the root. Raises ConfigError for one that cannot be made."""
    if isinstance(spec.root, HostRoot):
        return Layout((*_host(), *_accounts(spec.user, _resolver(spec.network))))
    if isinstance(spec.root, DirectoryRoot):
        return _directory(spec.root.path, [mount.target for mount in spec.mounts])
    raise ConfigError(f"image {spec.root.reference!r} must be resolved to its root directory first")


@cache
def _host() -> tuple[Piece, ...]:
    pieces: list[Piece] = [ReadOnly(Path("/usr"), "/usr")]
    for name in _PROGRAMS:
        path = Path("/") / name
        if path.is_symlink():
            pieces.append(Link(str(path.readlink()), str(path)))
        elif path.is_dir():
            pieces.append(ReadOnly(path, str(path)))
    pieces += _our_own(Path(__file__).resolve().parents[2])
    pieces += [Directory("/run"), Directory("/var"), Link("/tmp", "/var/tmp"), Directory("/etc")]  # noqa: S108
    etc = Path("/etc")
    found = [etc / name for name in _ETC] + [path for glob in _ETC_GLOBS for path in sorted(etc.glob(glob))]
    found = [path for path in found if path.exists()]
    parents = {parent for path in found for parent in path.parents if parent.is_relative_to(etc) and parent != etc}
    pieces += [Directory(str(parent)) for parent in sorted(parents)]
    pieces += [_copy_or_mount(path) for path in found]
    return (*pieces, *_local_time())


def _our_own(package: Path) -> list[Piece]:
    """Where SecureBench itself is installed among the host's programs, agents see an empty directory instead."""
    shown = any(package.is_relative_to(Path(path).resolve()) for path in HOST_ROOT_PATHS)
    return [Hidden(str(package))] if shown else []


def _copy_or_mount(path: Path) -> Piece:
    if path.is_file() and path.stat().st_size <= FILE_FLOOR:
        return Content(path.read_bytes(), str(path))
    return ReadOnly(path, str(path))


def _local_time() -> tuple[Piece, ...]:
    path = Path("/etc/localtime")
    if not path.exists():
        return ()
    real = path.resolve()
    if real.is_relative_to("/usr"):
        return (Link(str(real), str(path)),)
    return (_copy_or_mount(path),)


def _resolver(network: Network) -> tuple[tuple[str, str], ...]:
    """The host's own way to look names up, for a sandbox that is given the host's network."""
    if network is not Network.UNSAFE_HOST:
        return ()
    found = [(name, Path("/etc") / name) for name in ("resolv.conf", "hosts", "nsswitch.conf")]
    return tuple((name, path.read_text(errors="replace")) for name, path in found if path.is_file())


@cache
def _accounts(user: int, resolver: tuple[tuple[str, str], ...]) -> tuple[Piece, ...]:
    """The parts of /etc that name users and hosts: fixed, so that nothing of the host shows but its `resolver`."""
    names = {0: "root", 65534: "nobody"}
    names.setdefault(user, "sandbox")
    passwd = "".join(f"{name}:x:{uid}:{uid}:{name}:/tmp:/bin/sh\n" for uid, name in names.items())
    group = "".join(f"{name}:x:{uid}:\n" for uid, name in names.items())
    files = {
        "passwd": passwd,
        "group": group,
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n",
        "hostname": "sandbox\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
        **dict(resolver),
    }
    return tuple(Content(text.encode(), f"/etc/{name}") for name, text in files.items())


def _directory(root: Path, targets: list[str]) -> Layout:
    if not root.is_dir() or root.is_symlink():
        raise ConfigError(f"sandbox root {root} is not a directory")
    wanted = [PurePosixPath(path) for path in (*_BUILT_IN, *targets)]
    rebuilt = {parent for path in wanted for parent in _to_rebuild(root, path)}
    if not rebuilt:
        return Layout((ReadOnly(root, "/"),), sealed=True)
    replaced = {str(path) for path in wanted}
    pieces: list[Piece] = []
    for parent in sorted(rebuilt):
        pieces += _rebuild(root, parent, rebuilt, replaced)
    return Layout(tuple(pieces))


def _to_rebuild(root: Path, target: PurePosixPath) -> list[PurePosixPath]:
    """The directories above `target` that must be rebuilt, because its mount point is missing or is a link."""
    for parent in reversed(target.parents):
        inside = root / parent.relative_to("/")
        if inside.is_symlink():
            raise ConfigError(f"sandbox mount {target}: {parent} is a link in {root}; mount at its real place")
        if inside.exists() and not inside.is_dir():
            raise ConfigError(f"sandbox mount {target}: {parent} is not a directory in {root}")
    point = root / target.relative_to("/")
    if point.is_dir() and not point.is_symlink():
        return []
    return list(target.parents)


def _rebuild(root: Path, parent: PurePosixPath, rebuilt: set[PurePosixPath], replaced: set[str]) -> list[Piece]:
    inside = root / parent.relative_to("/")
    exists = inside.is_dir()
    mode = stat.S_IMODE(inside.stat().st_mode) & 0o755 if exists else 0o755
    pieces: list[Piece] = [] if parent == PurePosixPath("/") else [Directory(str(parent), mode)]
    for entry in sorted(inside.iterdir()) if exists else []:
        path = parent / entry.name
        if path in rebuilt or str(path) in replaced:
            continue
        if entry.is_symlink():
            pieces.append(Link(str(entry.readlink()), str(path)))
        elif entry.is_dir() or entry.is_file():
            pieces.append(ReadOnly(entry, str(path)))
    return pieces
