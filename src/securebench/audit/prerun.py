"""The audit before anything runs: it passes, or nothing does.

A result that passed is kept for a few minutes per host, level and version, under a key made of everything it depends
on. The file is believed only if it is ours alone. A result that did not pass is never kept.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from securebench import _json
from securebench.audit.components import component_key
from securebench.audit.result import EVERYTHING, AuditResult, from_json, merged
from securebench.audit.run import audit_level
from securebench.audit.shell import audit_shell
from securebench.errors import IntegrityError
from securebench.execution.isolation import AUTO, DOCKER, IMAGE_SETTING, Isolation, select_isolation
from securebench.sandboxes.base import ImageRoot, Root, Sandbox

if TYPE_CHECKING:
    import click

LIFETIME = 600.0
"""Seconds for which a result that passed is believed again."""

CACHE_SETTING = "SECUREBENCH_CACHE"
_MAX_BYTES = 1 << 20
_SHOWN = 10


class AuditFailed(IntegrityError):
    """A wall that must stand does not. Nothing was run; `result` has every row."""

    def __init__(self, result: AuditResult) -> None:
        rows = [f"- {check.id}: {check.detail}" for check in result.failures[:_SHOWN]]
        more = len(result.failures) - _SHOWN
        rows += [f"- … and {more} more"] if more > 0 else []
        super().__init__(
            f"the audit of {result.level} did not pass, so nothing was run ({len(result.failures)} of"
            f" {len(result.checks)} checks):\n" + "\n".join(rows) + "\n`securebench audit` shows all of them."
        )
        self.result = result


def require_audit(level: str | Isolation = AUTO, *, app: click.Group | None = None, fresh: bool = False) -> AuditResult:
    """`require_audit_async` for code that runs outside an event loop."""
    return anyio.run(partial(require_audit_async, level, app=app, fresh=fresh))


async def require_audit_async(
    level: str | Isolation = AUTO, *, app: click.Group | None = None, fresh: bool = False
) -> AuditResult:
    """The audit of this level, made now or a few minutes ago with the very same components.

    Raises AuditFailed with the rows that did not pass, SandboxUnavailable when the level cannot be had here."""
    isolation = level if isinstance(level, Isolation) else await select_isolation(level)
    key = component_key(isolation)
    place = _place(key)
    if not fresh and (kept := read_kept(place, key, time.time())) is not None:
        return kept
    result = await audit_level(isolation, groups=EVERYTHING, app=app)
    if not result.passed:
        raise AuditFailed(result)
    keep(place, result)
    return result


async def require_run_audit(sandbox: Sandbox, roots: Sequence[Root]) -> AuditResult:
    """The audit before a benchmark run: every backend its tasks are sent to.

    The embedded backend gets the whole audit. Docker gets it too where an image with Python is named for it; else the
    walls of the tasks' own images are looked at from a shell, and the limits tried there.

    Raises AuditFailed, SandboxUnavailable."""
    parts = []
    for name in sandbox.name.split("+"):
        if name == DOCKER and not os.environ.get(IMAGE_SETTING):
            images: list[Root] = [root for root in roots if isinstance(root, ImageRoot)]
            parts.append(await audit_shell(name, sandbox, (images or list(roots))[:1]))
        else:
            parts.append(await require_audit_async(name))
    result = merged(parts)
    if not result.passed:
        raise AuditFailed(result)
    return result


def cache_directory() -> Path:
    """`$SECUREBENCH_CACHE`, or securebench in the user's cache directory. Raises RuntimeError without a home."""
    if named := os.environ.get(CACHE_SETTING):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "securebench"


def _place(key: str) -> Path | None:
    try:
        return cache_directory() / f"audit-{key[:32]}.json"
    except RuntimeError:
        return None


def read_kept(place: Path | None, key: str, now: float) -> AuditResult | None:
    """A kept result, or None unless every sign is good: our own file, nobody else's to write, the key, the age, and
    every row passed."""
    if place is None:
        return None
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        ours = seen.st_uid == os.geteuid() and stat.S_ISREG(seen.st_mode) and seen.st_nlink == 1
        if not ours or stat.S_IMODE(seen.st_mode) != 0o600 or seen.st_size > _MAX_BYTES:
            return None
        data = file.read(_MAX_BYTES + 1)
    try:
        value = _json.loads(data)
        if not isinstance(value, dict):
            return None
        result = from_json(value)
    except (_json.JsonError, KeyError, TypeError, ValueError):
        return None
    fresh = 0 <= now - result.time < LIFETIME
    return result if result.key == key and fresh and result.passed else None


def keep(place: Path | None, result: AuditResult) -> None:
    """Write a result that passed beside its final name and move it there. A cache that cannot be written is no harm."""
    if place is None:
        return
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = place.with_name(f"{place.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o600)
            file.write(_json.dumps(result.as_json()))
        temporary.replace(place)
        _forget(place.parent.glob("audit-*.json*"), time.time())
    except OSError:
        return


def _forget(paths: Iterable[Path], now: float) -> None:
    for path in paths:
        if now - path.lstat().st_mtime > LIFETIME:
            path.unlink(missing_ok=True)
