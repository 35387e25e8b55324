"""Words for the terminal: text from strangers made safe to show, and our own name."""

from __future__ import annotations

import shutil
import sys

from securebench._text import one_line, visible

__all__ = ["one_line", "program", "visible"]


def program() -> str:
    """How the person called us, so that what we tell them to type works as it stands."""
    return "securebench" if shutil.which("securebench") or not sys.argv[0] else sys.argv[0]
