"""Starts without site-packages, which costs time and can run start-up files; looks there when an import needs it."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any


class LateSite:
    """The last of the finders: adds the site directories once, then looks again."""

    def __init__(self) -> None:
        self.added = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if self.added or path is not None:
            return None
        self.added = True
        before = list(sys.path)
        import site

        for directory in site.getsitepackages():
            if directory not in sys.path:
                sys.path.append(directory)
        return PathFinder.find_spec(name, None, target) if sys.path != before else None


def add_site_packages_late() -> None:
    sys.meta_path.append(LateSite())
