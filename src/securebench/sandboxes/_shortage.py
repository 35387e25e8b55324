"""What this process or this host has run out of while a sandbox was to be made: nobody's verdict."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from securebench.errors import SandboxError

_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EAGAIN}


@contextmanager
def shortage_told() -> Iterator[None]:
    """Only around what is ours: what a candidate can bring about is not told in these words. Raises SandboxError for
    descriptors, memory, space or processes that were not to be had."""
    try:
        yield
    except OSError as error:
        if error.errno not in _SHORT:
            raise
        raise SandboxError(f"this host ran out of what a sandbox needs: {(error.strerror or '').lower()}") from error
