"""The sandbox that verdicts rest on, made ready once: chosen, cleaned up after killed engines, its walls looked at and
audited. The same for whoever judges: a run, a regrading, a grader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from securebench.audit.prerun import require_run_audit
from securebench.benchmark_pack import RowIndex
from securebench.engine.preflight import check_walls, image_digests, task_roots
from securebench.families.registry import FAMILIES
from securebench.sandboxes.base import ISOLATED, Root, Sandbox
from securebench.sandboxes.select import select_sandbox
from securebench.tester_config import SandboxSection


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sandbox that may be used, and what a record states about it. Without a sandbox nothing is executed."""

    sandbox: Sandbox | None = None
    roots: tuple[Root, ...] = ()
    notices: tuple[str, ...] = ()  # for the operator
    audit: Mapping[str, Any] | None = None  # None where it was gone without
    images: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # reference to digest


async def prepare_sandbox(
    section: SandboxSection, roots: Sequence[Root], notice: Callable[[str], None], *, unsafe: bool = False
) -> Prepared:
    """Ready for tasks with these root file systems; `unsafe` goes without looking at its walls.

    Raises SandboxUnavailable, AuditFailed, SandboxError, ConfigError."""
    pull = None if section.pull == "never" else notice
    selection = await select_sandbox(section.backend, ISOLATED, roots, section.runtime, pull)
    sandbox, audit = selection.sandbox, None
    left = await sandbox.clean()
    if not unsafe:
        await check_walls(sandbox, roots)
        audit = (await require_run_audit(sandbox, roots)).as_record()
    cleaned = [f"removed what a killed run had left: {', '.join(left[:5])}"] if left else []
    images = await image_digests(sandbox, roots)
    return Prepared(sandbox, tuple(roots), (selection.reason, *cleaned), audit, images)


def executed_roots(entries: Iterable[RowIndex]) -> list[Root]:
    """The root file systems of the rows whose verdict needs something to be executed; none where none does."""
    executed = [entry.image for entry in entries if FAMILIES[entry.family].executes]
    return task_roots(executed) if executed else []
