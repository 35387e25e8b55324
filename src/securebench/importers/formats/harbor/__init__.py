"""`harbor` and `terminal-bench`: a directory for each task, with instructions, a Dockerfile, tests and a solution.

Both become `terminal_task` rows. The checker is the task's own tests, in a sandbox without candidate code; the solution
is kept hidden as the reference; what a sandbox cannot be is left out with the reason."""

from __future__ import annotations

from securebench.importers.formats.harbor.conversion import HARBOR, TERMINAL_BENCH

__all__ = ["HARBOR", "TERMINAL_BENCH"]
