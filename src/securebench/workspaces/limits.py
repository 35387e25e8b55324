"""How large a workspace may be when it is built."""

from __future__ import annotations

from dataclasses import dataclass

from securebench.errors import PackError


@dataclass(frozen=True, slots=True)
class MaterializationLimits:
    files: int = 100_000
    total_bytes: int = 4 * 2**30


class WorkspaceBudget:
    """What is left of the limits while one workspace is built."""

    def __init__(self, limits: MaterializationLimits) -> None:
        self.total = limits
        self.files, self.bytes = limits.files, limits.total_bytes

    def take(self, size: int) -> None:
        """One more entry of that many bytes. Raises PackError when it is one too many."""
        self.files -= 1
        self.bytes -= size
        if self.files < 0 or self.bytes < 0:
            raise PackError(
                f"the task's files exceed the limit of a workspace: {self.total.files} files, "
                f"{self.total.total_bytes} bytes"
            )
