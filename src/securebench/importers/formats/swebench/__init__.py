"""`swebench`: issues of repositories, with the patch that closed them and the tests that show it: `repo_patch`."""

from __future__ import annotations

from securebench.importers.formats.swebench.conversion import FORMAT

__all__ = ["FORMAT"]
