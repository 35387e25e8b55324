"""Python's garbage collector during long work."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLD = 10_000  # new objects before it looks
_OF_PYTHON = 1000  # frozen objects: fewer are not somebody's, some versions have hundreds of their own


@contextmanager
def spared() -> Iterator[None]:
    """What is there already stays while the context lasts; nobody has to look through it again and again.

    Does nothing where somebody does that already: another run in this process, or the program we are part of."""
    if gc.get_freeze_count() >= _OF_PYTHON:
        yield
        return
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
