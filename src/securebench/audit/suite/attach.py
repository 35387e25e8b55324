"""The signed audit that a run carries: played before it, believed from a day ago, or made earlier and named.

Whichever it is, it is of this host, of this code, of this catalogue and of the backends the run uses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from securebench import _json
from securebench.audit.cache import place, read_own, write_own
from securebench.audit.suite.backends import RUNSC, find_backends, ready
from securebench.audit.suite.catalogue import Catalogue, load_catalogue
from securebench.audit.suite.full import FullAudit, from_json, full_audit, missing_rows
from securebench.audit.suite.host import facts_key, host_facts
from securebench.audit.suite.result import Row
from securebench.audit.suite.run import Backend
from securebench.audit.suite.signed import check_signed, read_signed, sign_audit
from securebench.errors import IntegrityError
from securebench.records.audits import SignedAudit
from securebench.records.keys import SigningKey, keys_directory, known_keys
from securebench.sandboxes.base import ImageRoot, Root, Sandbox
from securebench.sandboxes.select import BACKENDS, RoutedSandbox

LIFETIME = 86400.0
"""Seconds for which a suite that passed is believed again on the same host with the same components."""
_MAX_BYTES = 16 << 20
_SHOWN = 10
Notice = Callable[[str], None]


class SuiteFailed(IntegrityError):
    """An attack succeeded, or was not shown to fail. Nothing was run."""

    def __init__(self, failures: Sequence[str]) -> None:
        more = len(failures) - _SHOWN
        lines = [*failures[:_SHOWN], *([f"… and {more} more"] if more > 0 else [])]
        super().__init__(
            "the attack suite did not pass, so nothing was run:\n"
            + "\n".join(f"- {line}" for line in lines)
            + "\n`securebench audit --full` shows all of it."
        )


async def attached_audit(
    sandbox: Sandbox | None,
    roots: Sequence[Root],
    key: SigningKey,
    *,
    runtime: str | None = None,
    file: Path | None = None,
    unsafe: bool = False,
    notice: Notice,
) -> SignedAudit:
    """The audit for a run on `sandbox`; where it executes nothing, on the backend that would be chosen.

    Raises SuiteFailed unless `unsafe`; ConfigError for a file that is no audit of this, IntegrityError for one nobody
    we know signed; SandboxUnavailable."""
    catalogue = load_catalogue()
    backends = await run_backends(sandbox, roots, runtime)
    if file is not None:
        signed = read_signed(file)
        known = {one.id for one in known_keys(keys_directory())} | {key.id}
        await check_signed(signed, str(file), catalogue, backends, known)
    else:
        signed = sign_audit(await _played(catalogue, backends, notice), key)
    if not signed.predicate.passed and not unsafe:
        raise SuiteFailed(_failures(signed))
    return signed


async def run_backends(sandbox: Sandbox | None, roots: Sequence[Root], runtime: str | None) -> tuple[Backend, ...]:
    """The backends that a run with this sandbox uses, each with a root that holds python3."""
    if sandbox is None:
        return (await find_backends(most=1)).backends
    images = [root.reference for root in roots if isinstance(root, ImageRoot)]
    single: dict[str, Sandbox] = {}
    for root in roots:
        one = sandbox.backend(root) if isinstance(sandbox, RoutedSandbox) else sandbox
        single.setdefault(one.name, one)
    names = {name: RUNSC if runtime == RUNSC and name in BACKENDS else name for name in single}
    return tuple([await ready(names[name], one, images=images) for name, one in single.items()])


async def _played(catalogue: Catalogue, backends: Sequence[Backend], notice: Notice) -> FullAudit:
    facts = await host_facts(catalogue, backends)
    where = place("suite", facts_key(facts))
    kept = None if where is None else read_kept(where, facts, time.time())
    if kept is not None and not missing_rows(kept, catalogue, backends):
        notice("this host withstood the attack suite less than a day ago; nothing changed since")
        return kept
    names = ", ".join(backend.name for backend in backends)
    notice(f"playing {len(catalogue.attacks)} attacks on {names} before the run")
    reached = 0

    def step(_: str, done: int, total: int, __: Row | None) -> None:
        nonlocal reached
        if total and done * 4 // total > reached:
            reached = done * 4 // total
            notice(f"{done} of {total} attacks were played")

    audit = await full_audit(catalogue, backends, at_once=len(os.sched_getaffinity(0)), on_step=step)
    if audit.passed and where is not None:
        write_own(where, _json.dumps(audit.as_json()), LIFETIME)
    return audit


def read_kept(path: Path, facts: dict[str, str], now: float) -> FullAudit | None:
    """A kept result, or None unless every sign is good: our own file, the same facts, its age, and that it passed."""
    data = read_own(path, _MAX_BYTES)
    if data is None:
        return None
    try:
        value = _json.loads(data)
        audit = from_json(value) if isinstance(value, dict) else None
    except (_json.JsonError, KeyError, TypeError, ValueError, AttributeError):
        return None
    if audit is None or audit.only or audit.suite.host != facts or not audit.passed:
        return None
    return audit if 0 <= now - audit.suite.time < LIFETIME else None


def _failures(signed: SignedAudit) -> list[str]:
    predicate = signed.predicate
    rows = [row for row in predicate.rows if row.verdict not in {"held", "not_played"}]
    checks = [check for one in predicate.canaries.values() for check in one.rows if not check.passed]
    found = [f"{row.attack} on {row.backend}: {row.verdict}: {row.detail}" for row in rows]
    return found + [f"{check.id}: {check.detail}" for check in checks] or ["nothing was played"]
