"""What this host offers: every backend probed by running it, graded, with the way to get more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from securebench.errors import InfrastructureError
from securebench.sandboxes.base import ISOLATED, Capabilities, Finding, Guarantee, HostRoot, Sandbox, SandboxSpec
from securebench.sandboxes.canary import run_canary
from securebench.sandboxes.select import BACKENDS, make_sandbox
from securebench.sandboxes.warm import WarmSandbox, warmed


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One backend: what it was seen to give, and what a probe inside one of its sandboxes complained about."""

    backend: str
    capabilities: Capabilities
    canary: tuple[str, ...]

    @property
    def grade(self) -> str:
        """`A` = a kernel of its own, `B` = isolated with hard memory limits, `C` = isolated, `F` = not usable."""
        given = self.capabilities.guarantees
        if not self.capabilities.usable or self.canary or not given >= ISOLATED:
            return "F"
        if Guarantee.KERNEL in given:
            return "A"
        return "B" if Guarantee.MEM_HARD in given else "C"

    def as_json(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "grade": self.grade,
            "usable": self.capabilities.usable,
            "guarantees": sorted(self.capabilities.guarantees),
            "findings": [
                {"name": f.name, "ok": f.ok, "detail": f.detail, "remedy": f.remedy} for f in self.capabilities.findings
            ],
            "canary": list(self.canary),
            "fingerprint": dict(self.capabilities.fingerprint),
        }


async def diagnose() -> list[Diagnosis]:
    """Probe every backend. A host that lacks one is a finding, never an error."""
    return [await _diagnose(make_sandbox(name)) for name in BACKENDS]


async def _diagnose(sandbox: Sandbox) -> Diagnosis:
    capabilities = await sandbox.probe()
    complaints: list[str] = []
    if capabilities.usable and await sandbox.offers(HostRoot()):
        try:
            complaints = await run_canary(sandbox, SandboxSpec(require=capabilities.guarantees & ISOLATED))
        except InfrastructureError as error:
            complaints = [str(error)]
    return Diagnosis(sandbox.name, await _with_warmth(sandbox, capabilities), tuple(complaints))


async def _with_warmth(sandbox: Sandbox, capabilities: Capabilities) -> Capabilities:
    """With the finding whether rooms can be warm, where the backend has such."""
    async with warmed(sandbox) as warm:
        if not isinstance(warm, WarmSandbox):
            return capabilities
        works = await warm.warm()
    detail = "programs begin in processes that stand ready" if works else f"rooms start anew each: {warm.why_not}"
    remedy = "" if works else "Nothing is less safe, only slower. Let processes in a sandbox make user namespaces."
    finding = Finding("warm rooms", works, detail, remedy)
    return replace(capabilities, findings=(*capabilities.findings, finding))


async def clean() -> list[str]:
    """Remove what engines that no longer live left behind, on every backend; what was removed."""
    removed: list[str] = []
    for name in BACKENDS:
        try:
            removed += await make_sandbox(name).clean()
        except InfrastructureError:
            continue  # a backend that is not there left nothing that could be found
    return removed
