"""Content-addressed store of captured bytes."""

from __future__ import annotations

from pathlib import Path


class CandidateStore:
    """Placeholder until the real store is written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
