"""Raw system calls before the program starts, through `_ctypes` alone: the ctypes package costs milliseconds more."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Libc:
    """`syscall` and memory for its arguments. Raises OSError where there is no `_ctypes` or no such function."""

    def __init__(self) -> None:
        try:
            import _ctypes as module
        except ImportError as error:
            raise OSError(f"no _ctypes: {error}") from None
        c: Any = module
        self._c = c
        long = type("long", (c._SimpleCData,), {"_type_": "l"})
        self._char: Any = type("char", (c._SimpleCData,), {"_type_": "c"})
        flags = {"_flags_": c.FUNCFLAG_CDECL | c.FUNCFLAG_USE_ERRNO, "_restype_": long}
        prototype = type("function", (c.CFuncPtr,), flags)
        handle = c.dlopen(None, 0)
        self._call = prototype(c.dlsym(handle, "syscall"))
        self._long = long
        self._kept: list[Any] = []

    def call(self, number: int, *args: int) -> int:
        """One system call. Raises OSError with the kernel's reason."""
        result = self._call(*(self._long(one) for one in (number, *args)))
        value = getattr(result, "value", result)
        if value == -1:
            number = self._c.get_errno()
            raise OSError(number, os.strerror(number))
        return int(value)

    def memory(self, data: bytes) -> int:
        """The address of a copy of `data` that lives as long as this object."""
        block = (self._char * max(1, len(data))).from_buffer(bytearray(data or b"\0"))
        self._kept.append(block)
        return int(self._c.addressof(block))
