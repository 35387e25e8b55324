"""Where tasks come from: a file, a directory, an archive, a data set on a hub. All of them are files by name."""

from __future__ import annotations

from securebench.importers.sources.base import Source, SourceFile
from securebench.importers.sources.opening import open_source

__all__ = ["Source", "SourceFile", "open_source"]
