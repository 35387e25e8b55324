"""A root file system with a few programs, made of this host's own: what an image is, without anybody's image."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path


def make_root(root: Path, tools: Iterable[str]) -> Path:
    """Copy programs and the libraries they need."""
    (root / "bin").mkdir(parents=True)
    (root / "etc").mkdir()
    for tool in tools:
        source = Path(shutil.which(tool) or "").resolve()
        shutil.copy(source, root / "bin" / tool)
        listing = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+\.so\S*)", listing):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(Path(library).resolve(), target)
    return root
