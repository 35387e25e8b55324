"""Which code may run: what the loader made itself, once.

A frame of ours is no proof: a signal handler or a finaliser may be a C function such as `exec`, called while our frame
is the nearest. So the loader announces each code object, and the hook lets exactly that one pass.
"""

from __future__ import annotations

import sys

from .bake import SECRET, TRUSTED, bake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def bless(code: Any) -> None:
    """Announce `code`; only a trusted function may. Raises RuntimeError for anyone else."""
    getframe: Any = "@getframe"
    trusted: Any = "@trusted"
    append: Any = "@append"
    stranger: Any = "@stranger"
    if getframe(1).f_globals is not trusted:
        raise stranger("only the guard's loader may do that")
    append(code)


def is_blessed(code: Any) -> bool:
    """Whether `code` was announced; it counts once."""
    waiting: Any = "@waiting"
    index = waiting.__len__()
    while index:
        index -= 1
        if waiting[index] is code:
            waiting.pop(index)
            return True
    return False


def make() -> tuple[Any, Any]:
    """The two ends, sharing a list that nobody else can reach."""
    waiting: list[object] = []
    announce = bake(
        bless, SECRET, getframe=sys._getframe, trusted=TRUSTED, append=waiting.append, stranger=RuntimeError
    )
    return announce, bake(is_blessed, SECRET, waiting=waiting)
