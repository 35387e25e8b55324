"""Landlock from inside: the work directory may be written, libraries may be read, the rest is not there to open."""

# pathlib costs milliseconds at start-up.
# ruff: noqa: PTH112

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .libc import Libc

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE, _READ, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""Everything a version can govern; later versions govern no more files."""
_DEVICE_NODES = (1 << 6) | (1 << 11)  # character and block devices
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_TCP = 3  # bind and connect, from version 4
_SCOPES = 3  # abstract sockets and signals, from version 6

SHARED_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
"""Read by the dynamic linker when an extension module is loaded; the guard does not open them for the program."""


def restrict(
    libc: Libc, root: str, readable: tuple[str, ...], devices: tuple[str, ...], allowed: frozenset[str]
) -> None:
    """Confine this process. Raises OSError where the kernel has no Landlock."""
    version = libc.call(_CREATE, 0, 0, _VERSION)
    handled = _RIGHTS[min(version, 5)]
    network = _TCP if version >= 4 and "network" not in allowed else 0
    scopes = _SCOPES if version >= 6 and "signals" not in allowed else 0
    attributes = [handled] + [network] * (version >= 4) + [scopes] * (version >= 6)
    data = b"".join(one.to_bytes(8, "little") for one in attributes)
    ruleset = libc.call(_CREATE, libc.memory(data), len(data), 0)
    try:
        reading = _READ | _READ_DIR
        _add(libc, ruleset, root, handled & ~(_EXECUTE | _DEVICE_NODES))
        for path in (*readable, *SHARED_LIBRARIES):
            _add(libc, ruleset, path, reading)
        for path in devices:
            _add(libc, ruleset, path, (_READ | _WRITE | _IOCTL | _TRUNCATE) & handled)
        libc.call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _add(libc: Libc, ruleset: int, path: str, rights: int) -> None:
    """Allow `rights` beneath `path`; a path that is not there allows nothing."""
    try:
        directory = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _ON_FILES
        rule = rights.to_bytes(8, "little") + directory.to_bytes(4, "little")
        libc.call(_ADD, ruleset, _PATH_BENEATH, libc.memory(rule), 0)
    finally:
        os.close(directory)
