"""Container images for the embedded sandbox, imported without a daemon.

`ImageStore` keeps root file systems by content; `resolve_root` is what a sandbox backend asks for an image a pack
names. Images are strangers' archives: `_tar` parses, `_inside` finds directories, `_writer` writes, and none of them
lets the kernel follow a link or a name out of the tree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from securebench.images.store import ImageStore, StoredImage

__all__ = ["default_root", "default_store", "resolve_root"]


def default_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Where images are kept: `$SECUREBENCH_HOME/images`, else `$XDG_DATA_HOME/securebench/images`, else beneath
    `~/.local/share`; for root beneath `/var/lib`, because the users its sandboxes run as cannot enter its home."""
    if home := environ.get("SECUREBENCH_HOME"):
        return Path(home).absolute() / "images"
    if data := environ.get("XDG_DATA_HOME"):
        return Path(data).absolute() / "securebench" / "images"
    if os.geteuid() == 0:
        return Path("/var/lib/securebench/images")
    return Path.home() / ".local" / "share" / "securebench" / "images"


def default_store() -> ImageStore:
    """The store at `default_root`."""
    from securebench.images.store import ImageStore

    return ImageStore(default_root())


def resolve_root(reference: str) -> StoredImage:
    """The imported image of that name or digest: mount its `rootfs`, record its `digest`.

    Raises SandboxUnavailable with the remedy when it was not imported, IntegrityError when the store was changed."""
    return default_store().resolve(reference)
