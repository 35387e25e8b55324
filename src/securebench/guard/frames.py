"""Who is calling: the guard, a library, or the program.

A library is a file under a directory the program cannot write. A code object's file name can be believed, because
the program can neither compile, unmarshal nor alter code.
"""

# A generator is a function of its own, which would not be baked.
# ruff: noqa: SIM110

from __future__ import annotations

from .bake import SPACES, bake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_library(name: Any) -> bool:
    """Whether a code object's file name belongs to a library."""
    directories: Any = "@directories"
    text: Any = "@str"
    kind: Any = "@type"
    if kind(name) is not text:
        return False
    if name[:8] == "<frozen ":
        return True
    for directory in directories:
        if name.startswith(directory) and "/../" not in name:
            return True
    return False


def is_ours(frame: Any) -> bool:
    """Whether a frame is the guard's."""
    spaces: Any = "@spaces"
    names = frame.f_globals
    for space in spaces:
        if names is space:
            return True
    return False


def caller_of(frame: Any) -> tuple[str, str]:
    """File and function of the nearest frame that is neither ours nor the import system's."""
    is_ours: Any = "@is_ours"
    while frame is not None:
        if not is_ours(frame):
            code = frame.f_code
            name = code.co_filename
            if name[:17] != "<frozen importlib" and not name.endswith("/importlib/__init__.py"):
                return name, code.co_name
        frame = frame.f_back
    return "", ""


def place_of(frame: Any) -> tuple[str, int]:
    """File and line of the nearest frame of the program itself."""
    is_ours: Any = "@is_ours"
    is_library: Any = "@is_library"
    first = ("", 0)
    while frame is not None:
        if not is_ours(frame):
            name = frame.f_code.co_filename
            here = (name, frame.f_lineno or 0)
            if not is_library(name):
                return here
            if first[1] == 0:
                first = here
        frame = frame.f_back
    return first


def make(directories: tuple[str, ...]) -> tuple[Any, Any, Any, Any]:
    """`is_library`, `is_ours`, `caller_of` and `place_of` for these library directories (each ending in a slash)."""
    library = bake(is_library, directories=directories, str=str, type=type)
    ours = bake(is_ours, spaces=SPACES)
    return library, ours, bake(caller_of, is_ours=ours), bake(place_of, is_ours=ours, is_library=library)
