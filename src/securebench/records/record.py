"""The record of one attempt: the seed's fields, what the verdict rests on, and digests of everything that decided."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from securebench.records.redaction import Redactor
from securebench.resources import REDACTED, Visibility
from securebench.tasks import SecureBenchTask

RECORD_VERSION = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """What is the same for every record of a run."""

    run_id: str
    pack_digest: str
    config_digest: str
    harness: str
    audit: Mapping[str, Any] | None = None  # of the walls, where anything is executed
    unsafe: bool = False  # the operator went without the audit


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict of one attempt in plain values, however it came about."""

    status: str
    passed: bool | None = None
    score: float | None = None
    assurance: str | None = None
    failure_reason: str | None = None
    message: str = ""
    stdout: str = ""
    stderr: str = ""
    metadata: Mapping[str, Any] | None = None
    controls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, Any] | None = None
    voucher: Mapping[str, Any] | None = None  # the word of the node that judged


def candidate_record(
    identity: Identity,
    task: SecureBenchTask,
    attempt: int,
    produced: Mapping[str, Any],
    judged: Judged,
    timings: Mapping[str, float],
    history: Mapping[str, Any],
    redact: Redactor,
) -> dict[str, Any]:
    """One line of `candidates.jsonl`. What the trusted side says is scrubbed of the task's private values."""
    vouchers = {"produce": produced.get("voucher"), "verify": judged.voucher}
    nodes = {phase: voucher for phase, voucher in vouchers.items() if voucher is not None}
    return {
        "record_version": RECORD_VERSION,
        "run_id": identity.run_id,
        "task_id": task.id,
        "attempt": attempt,
        "benchmark_id": task.benchmark_id,
        "task_type": task.task_type,
        "verification_status": judged.status,
        "passed": judged.passed,
        "score": judged.score,
        "assurance": "unsafe" if identity.unsafe else judged.assurance,
        "audit": identity.audit,
        "failure_reason": judged.failure_reason,
        "failure_message": redact.text(judged.message),
        "candidate_text": produced.get("text"),
        "candidate_patch": produced.get("patch"),
        "candidate_workspace": produced.get("workspace"),
        "producer_stdout": produced.get("stdout", ""),
        "producer_stderr": produced.get("stderr", ""),
        "producer_metadata": produced.get("metadata", {}),
        "verifier_stdout": redact.text(judged.stdout),
        "verifier_stderr": redact.text(judged.stderr),
        "verifier_metadata": redact.value(judged.metadata or {}),
        "resource_summary": task.resource_summary(),
        "hidden_values": {r.name: REDACTED for r in task.resources.resources if r.visibility is not Visibility.PUBLIC},
        "controls": [redact.value(dict(control)) for control in judged.controls],
        "usage": {**(judged.usage or {}), **({"models": produced["usage"]} if produced.get("usage") else {})},
        "cost": produced.get("usage", {}).get("cost_usd"),
        "evidence": dict(produced.get("evidence", {})),
        "repeats": [redact.value(repeat) for repeat in history["repeats"]],
        "lost_starts": history["lost_starts"],
        "timings": {name: round(value, 4) for name, value in timings.items()},
        "digests": {
            "pack": identity.pack_digest,
            "row": task.row_digest,
            "candidate": produced.get("digest"),
            "image": produced.get("metadata", {}).get("fingerprint", {}).get("image"),
            "harness": produced.get("metadata", {}).get("harness_digest"),
            "config": identity.config_digest,
            "securebench": securebench_digest(),
        },
        **({"nodes": nodes} if nodes else {}),
    }


@cache
def securebench_digest() -> str:
    """`VERSION sha256:…` over the source of the running package."""
    root = Path(__file__).parent.parent
    sha = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        sha.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return f"{version('securebench')} sha256:{sha.hexdigest()}"
