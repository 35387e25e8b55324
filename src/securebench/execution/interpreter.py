"""Which Python runs a stranger's program.

The interpreter must be visible inside the sandbox. One beneath the host's program directories is already; any other
is mounted read-only with its whole prefix. Ours may live in a virtual environment or a home directory, so it is
only one candidate among several.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes.base import HOST_ROOT_PATHS, Bind

PYTHON_SETTING = "SECUREBENCH_PYTHON"
"""The environment variable that names the interpreter for strangers' programs."""

_USUAL = ("/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3")
_OLDEST = (3, 11)
_VERSIONED = re.compile(r"python(\d+)\.(\d+)$")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python as a sandbox sees it. `mounts` make it visible where the root does not."""

    program: str
    mounts: tuple[Bind, ...] = ()

    @property
    def version(self) -> tuple[int, int] | None:
        """Major and minor, as its name says; None where the name does not."""
        found = _VERSIONED.search(self.program)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def readable(self) -> tuple[str, ...]:
        """Directories outside the root that belong to the interpreter."""
        return tuple(mount.target for mount in self.mounts)


IN_IMAGE = Interpreter("python3")
"""Whatever an image calls python3."""


def find_interpreter(wanted: str | None = None, environ: Mapping[str, str] = os.environ) -> Interpreter:
    """The interpreter for sandboxes that show the host's programs: the one asked for, or named by the setting, or
    ours if it is visible inside, or the host's. Raises ConfigError, SandboxUnavailable with the remedy."""
    named = wanted or environ.get(PYTHON_SETTING)
    if named:
        return _named(named)
    for candidate in (_ours(), *_USUAL):
        real = Path(candidate).resolve()
        if _shown(real) and real.is_file() and _new_enough(real):
            return Interpreter(str(real))
    raise SandboxUnavailable(
        "no Python of this host is visible inside a sandbox",
        f"Install python3 (sudo apt-get install python3), or name one: {PYTHON_SETTING}=/path/to/python3",
    )


def find_on_host(wanted: str | None = None, environ: Mapping[str, str] = os.environ) -> Interpreter:
    """The same for levels without a file system of their own, where in the end ours will do. Raises ConfigError."""
    try:
        return find_interpreter(wanted, environ)
    except SandboxUnavailable:
        return Interpreter(_ours())


def _ours() -> str:
    """The interpreter beneath any virtual environment we run in."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _named(text: str) -> Interpreter:
    found = shutil.which(text)
    if found is None:
        raise ConfigError(f"the Python {text!r} does not exist or cannot be executed")
    real = Path(found).resolve()
    if not _new_enough(real):
        raise ConfigError(f"{real} is too old; Python {'.'.join(map(str, _OLDEST))} or later is needed")
    if _shown(real):
        return Interpreter(str(real))
    prefix = real.parent.parent
    if prefix == Path("/") or real.parent.name != "bin":
        raise ConfigError(f"{real} is not in the bin directory of an installation of its own")
    closed = [parent for parent in (prefix, *prefix.parents) if not parent.stat().st_mode & 0o001]
    if closed and os.geteuid() == 0:
        raise ConfigError(f"sandboxes started by root cannot enter {closed[-1]}, where {real} lies; use another Python")
    return Interpreter(str(real), (Bind(prefix, str(prefix)),))


def _shown(path: Path) -> bool:
    return any(path.is_relative_to(Path(shown).resolve()) for shown in HOST_ROOT_PATHS)


def _new_enough(path: Path) -> bool:
    """By its name; one that does not say is asked by the guard itself, which starts only where it works."""
    version = Interpreter(str(path)).version
    return version is None or version >= _OLDEST
