"""What the result of an audit depends on, in one digest: a changed component makes another key."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from securebench.execution.isolation import Isolation

_PACKAGE = Path(__file__).resolve().parent.parent
_PARTS = ("guard", "execution", "sandboxes", "audit", "cli", "_proc.py", "_fs.py", "_leftovers.py")
_TOOLS = ("bwrap", "docker", "runsc")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def component_key(isolation: Isolation) -> str:
    """The digest of our code, kernel, tools and interpreters, of who we are, and of what the backend said of itself."""
    sha = hashlib.sha256()
    for line in _lines(isolation):
        sha.update(line.encode("utf-8", "surrogateescape") + b"\0")
    return sha.hexdigest()


def _lines(isolation: Isolation) -> Iterator[str]:
    yield f"securebench {version('securebench')} {_code()}"
    yield f"kernel {platform.release()} {platform.version()} {platform.machine()}"
    yield f"boot {_read(_BOOT)}"
    yield f"user {os.geteuid()} {os.getegid()}"
    yield f"python {sys.version} {sys.executable}"
    yield f"level {isolation.level} {isolation.sandbox.name} {isolation.root}"
    yield f"interpreter {isolation.interpreter.program} {_identity(isolation.interpreter.program)}"
    for name in _TOOLS:
        found = shutil.which(name)
        yield f"tool {name} {found} {_identity(found) if found else ''}"
    for key, value in sorted(isolation.capabilities.fingerprint.items()):
        yield f"{key} {value}"


@cache
def _code() -> str:
    """The bytes of everything that builds, runs or checks a sandbox."""
    sha = hashlib.sha256()
    for part in _PARTS:
        path = _PACKAGE / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            sha.update(f"{file.relative_to(_PACKAGE)}\0".encode() + file.read_bytes() + b"\0")
    return sha.hexdigest()


def _identity(path: str) -> str:
    """What changes when a file is replaced; a name inside an image has none here."""
    try:
        seen = Path(path).resolve().stat()
    except OSError:
        return "not on this host"
    return f"{seen.st_dev}:{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
