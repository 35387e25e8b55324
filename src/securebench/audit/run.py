"""One audit of one isolation level, from nothing to its rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from securebench.audit.checkout import check_checkout
from securebench.audit.children import check_children
from securebench.audit.components import component_key
from securebench.audit.result import EVERYTHING, AuditResult, Check, Group
from securebench.execution.isolation import AUTO, Isolation, select_isolation

if TYPE_CHECKING:
    import click


async def audit_level(
    level: str | Isolation = AUTO, *, groups: frozenset[Group] = EVERYTHING, app: click.Group | None = None
) -> AuditResult:
    """Look at every wall of `level` on this host. `app` is the command line, where there is one to look at.

    Raises SandboxUnavailable when the level cannot be had here; a wall that is missing is a row that did not pass."""
    began, now = time.monotonic(), round(time.time(), 3)
    isolation = level if isinstance(level, Isolation) else await select_isolation(level)
    rows: list[Check] = await check_children(isolation, groups)
    if Group.SURFACE in groups and app is not None:
        from securebench.audit.surface import check_surface

        rows += check_surface(app)
    if Group.CHECKOUT in groups:
        rows += check_checkout()
    return AuditResult(isolation.level, component_key(isolation), now, time.monotonic() - began, tuple(rows))
