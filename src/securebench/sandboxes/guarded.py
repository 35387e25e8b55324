"""`GuardedSandbox`: the place of the guarded Python child in the protocol.

It will run one Python program under runtime guards, for hosts whose kernel offers nothing better. Guards alone
isolate nothing, so this backend gives no guarantee, is never chosen by `auto`, and refuses every spec that requires
one. Until the guard layer is there it refuses the others too, and says so."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from securebench.errors import SandboxUnavailable
from securebench.sandboxes.base import Capabilities, Finding, Root, SandboxSpec, Session

_REMEDY = "Use the bubblewrap or docker backend; `securebench doctor` shows how to get them here."


class GuardedSandbox:
    """A Python child under guards. Not isolation."""

    name = "guarded"

    async def probe(self) -> Capabilities:
        """Not usable yet; never a guarantee."""
        finding = Finding("guard layer", ok=False, detail="not part of this version", remedy=_REMEDY)
        return Capabilities(usable=False, guarantees=frozenset(), findings=(finding,), fingerprint={})

    async def offers(self, root: Root) -> bool:  # noqa: ARG002 — the protocol's shape
        return False

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """Raises SandboxUnavailable."""
        wanted = ", ".join(sorted(spec.require)) or "a Python child"
        raise SandboxUnavailable(f"the guarded backend cannot give {wanted}", _REMEDY)

    async def clean(self) -> list[str]:
        """Nothing can be left behind."""
        return []
