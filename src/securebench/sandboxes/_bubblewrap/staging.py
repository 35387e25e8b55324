"""Makes read-only mounts reachable for a sandbox that runs as another user than we do.

A file of root's with mode 0600, or beneath a directory with mode 0700, cannot be opened by the user a sandbox
drops to. What a spec names is meant to be visible inside, so such a source is copied to a place that is.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from securebench._leftovers import staging_directory
from securebench.errors import ConfigError, SandboxError
from securebench.sandboxes._bubblewrap.identity import Identity
from securebench.sandboxes.base import Bind, DirectoryRoot, Mount, SandboxSpec

_MOST_BYTES = 1 << 30


def reachable(spec: SandboxSpec, identity: Identity, cleanup: ExitStack) -> SandboxSpec:
    """The same spec with sources that `identity` can open. Copies go when `cleanup` does.

    Raises ConfigError for a source that does not exist, SandboxError for a root directory that cannot be opened.
    """
    root = spec.root
    if isinstance(root, DirectoryRoot) and not identity.may_reach(root.path.resolve()):
        raise SandboxError(f"the sandbox user cannot enter {root.path}; make it and its parents o+x, and it o+r")
    mounts: list[Mount] = []
    for mount in spec.mounts:
        if isinstance(mount, Bind):
            source = mount.source.resolve()
            if not source.exists():
                raise ConfigError(f"sandbox mount {mount.target}: {mount.source} does not exist")
            if not identity.may_reach(source):
                source = _copy(source, cleanup.enter_context(staging_directory()))
            mounts.append(replace(mount, source=source))
        else:
            mounts.append(mount)
    return replace(spec, mounts=tuple(mounts))


def _copy(source: Path, directory: Path) -> Path:
    target = directory / "copy"
    budget = [_MOST_BYTES]
    if source.is_dir():
        _copy_tree(source, target, budget)
    else:
        _copy_file(source, target, budget)
    return target


def _copy_tree(source: Path, target: Path, budget: list[int]) -> None:
    target.mkdir()
    for entry in sorted(source.iterdir()):
        info = entry.lstat()
        if stat.S_ISLNK(info.st_mode):
            (target / entry.name).symlink_to(entry.readlink())
        elif stat.S_ISDIR(info.st_mode):
            _copy_tree(entry, target / entry.name, budget)
        elif stat.S_ISREG(info.st_mode):
            _copy_file(entry, target / entry.name, budget)
    _publish(source, target, 0o555)


def _copy_file(source: Path, target: Path, budget: list[int]) -> None:
    budget[0] -= source.stat().st_size
    if budget[0] < 0:
        raise SandboxError(f"{source} is too large to copy for the sandbox user; make it readable: chmod -R o+rX")
    shutil.copyfile(source, target)
    _publish(source, target, 0o444)


def _publish(source: Path, target: Path, least: int) -> None:
    info = source.stat()
    target.chmod(stat.S_IMODE(info.st_mode) & 0o777 | least)
    os.utime(target, ns=(info.st_mtime_ns, info.st_mtime_ns))
