"""Words for the terminal: text from strangers made safe to show, and our own name."""

from __future__ import annotations

import shutil
import sys

from securebench._text import one_line, visible

__all__ = ["attempt_name", "one_line", "program", "visible"]


def attempt_name(task_id: str | None, attempt: int | None) -> str:
    """At the beginning of a line: a pack may call its task `::error::`, which gives an order to some CI services."""
    name = str(task_id)
    return f"{name if name[0].isalnum() else f'task {name}'} #{attempt}"


def program() -> str:
    """How the person called us, so that what we tell them to type works as it stands."""
    return "securebench" if shutil.which("securebench") or not sys.argv[0] else sys.argv[0]
