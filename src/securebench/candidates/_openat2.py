"""`openat2(2)`, which Python does not have: one path, resolved by the kernel beneath a directory or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_NUMBER = 437  # the same on every architecture that has it
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_RESOLVE = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_TRIES = 1000

Opener = Callable[[int, bytes], int]


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def opener(flags: int) -> Opener:
    """Opens a path relative to a directory descriptor: beneath it, through no link, on the same mount.

    The opener raises OSError: ELOOP for a link, EXDEV for a way that leads outside or onto another mount."""
    how = _How(flags | os.O_CLOEXEC, 0, _RESOLVE)
    number, reference, size = ctypes.c_long(_NUMBER), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
    # Asking for errno makes a call half as fast again, and it is needed only after a failure.
    fast, telling = ctypes.CDLL(None).syscall, ctypes.CDLL(None, use_errno=True).syscall
    fast.restype = telling.restype = ctypes.c_long

    def open_beneath(directory: int, path: bytes) -> int:
        descriptor: int = fast(number, directory, path, reference, size)
        if descriptor >= 0:
            return descriptor
        for _ in range(_TRIES):
            descriptor = telling(number, directory, path, reference, size)
            if descriptor >= 0:
                return descriptor
            if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):  # EAGAIN: something was renamed meanwhile
                break
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)

    return open_beneath


@cache
def available() -> bool:
    """Whether this kernel has it, and nothing (a seccomp filter, another system) keeps us from it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.close(opener(os.O_RDONLY | os.O_DIRECTORY)(root, b"."))
    except (OSError, AttributeError):
        return False
    finally:
        os.close(root)
    return True
