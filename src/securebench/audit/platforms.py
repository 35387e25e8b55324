"""Which layers there are on which platform, and what they come to for each promise: the data of docs/safety.md."""

from __future__ import annotations

from collections.abc import Mapping

from securebench.audit.canaries import BACKEND, PROMISES, SEAL, Promise

GUARD = "guard"

PLATFORMS: Mapping[str, frozenset[str]] = {
    "Linux (default: bubblewrap, or docker)": frozenset({GUARD, SEAL, BACKEND}),
    "Linux, `--isolation guard`": frozenset({GUARD, SEAL}),
    "macOS": frozenset({GUARD}),
    "Windows": frozenset({GUARD}),
}


def held(promise: Promise, layers: frozenset[str]) -> str:
    """How a promise is kept by these layers, in a word or two."""
    words = [GUARD] if promise.guard and GUARD in layers else []
    kept = [name for name, by in promise.kernel.items() if by & layers]
    if kept:
        words.append("kernel" if len(kept) == len(promise.kernel) else "kernel in part")
    return " + ".join(words) or "not kept"


def not_kept(layers: frozenset[str]) -> list[str]:
    """Kernel canaries that nothing stops with only these layers."""
    kernel = layers - {GUARD}
    return [name for promise in PROMISES for name, by in promise.kernel.items() if not by & kernel]
