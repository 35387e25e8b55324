"""The audit of a sandbox whose images need not hold Python: the walls seen from a shell, and two limits tried there."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from securebench.audit.result import AuditResult, Check, Group
from securebench.errors import SecureBenchError
from securebench.sandboxes.base import Command, Limits, Outcome, Root, Sandbox, SandboxSpec, Scratch, run_once
from securebench.sandboxes.canary import run_canary

_WORK = "/workspace"


async def audit_shell(level: str, sandbox: Sandbox, roots: Sequence[Root]) -> AuditResult:
    """Look at the walls of these root file systems. A wall that is missing is a row that did not pass."""
    began, now = time.monotonic(), round(time.time(), 3)
    rows = [check for root in roots for check in await _rows(sandbox, root)]
    capabilities = await sandbox.probe()
    key = hashlib.sha256(repr((level, list(roots), sorted(capabilities.fingerprint.items()))).encode()).hexdigest()
    return AuditResult(level, key, now, time.monotonic() - began, tuple(rows))


async def _rows(sandbox: Sandbox, root: Root) -> list[Check]:
    spec = SandboxSpec(root=root, mounts=(Scratch(_WORK),), cwd=_WORK)
    small = SandboxSpec(root=root, mounts=(Scratch(_WORK),), cwd=_WORK, limits=Limits(wall_seconds=1, output=65536))
    try:
        missing = await run_canary(sandbox, spec)
        slept = await run_once(sandbox, small, Command(("/bin/sh", "-c", "while :; do :; done")))
        flood = "i=0; while [ $i -lt 99999 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done"
        flooded = await run_once(sandbox, small, Command(("/bin/sh", "-c", flood), wall_seconds=60))
    except (SecureBenchError, OSError) as error:
        return [Check("walls: could not be looked at", Group.BACKEND, False, str(error)[:500])]
    return [
        Check("walls as seen by a shell", Group.BACKEND, not missing, "; ".join(missing) or "as they must be"),
        Check("limit: wall", Group.LIMITS, slept.outcome is Outcome.TIMEOUT, slept.outcome.value),
        Check("limit: output", Group.LIMITS, flooded.outcome is Outcome.OUTPUT_LIMIT, flooded.outcome.value),
    ]
