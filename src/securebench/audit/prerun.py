"""The audit before anything runs: it passes, or nothing does.

A result that passed is kept for a few minutes per host, level and version, under a key made of everything it depends
on. The file is believed only if it is ours alone. A result that did not pass is never kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from securebench import _json
from securebench.audit.cache import place as kept_place
from securebench.audit.cache import read_own, write_own
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
    place = kept_place("audit", key)
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


def read_kept(place: Path | None, key: str, now: float) -> AuditResult | None:
    """A kept result, or None unless every sign is good: our own file, nobody else's to write, the key, the age, and
    every row passed."""
    data = None if place is None else read_own(place, _MAX_BYTES)
    if data is None:
        return None
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
    """For a few minutes. A cache that cannot be written is no harm."""
    if place is not None:
        write_own(place, _json.dumps(result.as_json()), LIFETIME)
