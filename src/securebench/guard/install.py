"""Everything that must be in place before the program's first byte, in the order that makes each part possible."""

# pathlib costs milliseconds at start-up.
# ruff: noqa: PTH112, PTH120

from __future__ import annotations

import os
import sys

from . import bless, frames, hook, paths, wrap
from .dynamic import make_judges
from .imports import lock
from .report import make_tell
from .run import make_launch
from .submitted import submitted_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .params import Params

_ONLY_OURS = ("_ctypes", "_json", "resource")


class _Tools:
    """What the hook and the lock need, handed over once."""

    may: Any
    plain: Any
    is_library: Any
    is_ours: Any
    caller_of: Any
    place: Any
    tell: Any
    refuse: Any
    bless: Any
    is_blessed: Any
    allowed_modules: frozenset[str]
    reload_blocked: bool


def install(params: Params, report: int, source: bytes) -> tuple[list[str], Any]:
    """Seal, lock and hook. The names of what was installed, and the function that runs the program."""
    stdlib = os.path.dirname(os.__file__).replace("\\", "/")
    libraries = _libraries(params, stdlib)
    directory = os.path.dirname(params.program).replace("\\", "/")
    submitted = submitted_files(directory, params.modules)
    network = () if "network" in params.sealed else paths.FOR_NETWORK
    readable = (*libraries, *params.readable, directory, *network, os.path.dirname(__file__))
    tools = _Tools()
    tools.may, tools.plain = paths.make_may(params.root, readable)
    inside = tuple(one + "/" for one in libraries)
    tools.is_library, tools.is_ours, tools.caller_of, tools.place = frames.make(inside)
    tools.bless, tools.is_blessed = bless.make()
    tools.tell = make_tell(report, trace=params.trace)
    tools.allowed_modules = params.allowed_modules
    tools.reload_blocked = "reload" in params.blocked
    judges = make_judges(params.blocked, params.allowed_modules, stdlib, tools.is_library)
    hooking, tools.refuse = hook.make_hook(params.blocked, tools, judges)
    stubs = wrap.make_stubs(params.blocked, tools.refuse)
    launch = make_launch(source, params.program, tools.is_ours, tools.bless)
    installed: list[str] = []
    if params.seal or params.rlimits:
        from .seal import seal

        installed += seal(params, readable)
    if "imports" in params.blocked:
        lock(libraries, submitted, params.modules, tools, stubs)
        installed.append("imports")
    wrap.put(stubs)
    sys.path[:] = [directory, *libraries]
    if "tampering" in params.blocked:
        # Callbacks would run inside the guard's own frames; with the name gone nobody can add one.
        __import__("gc").__dict__.pop("callbacks", None)
    _clear(_ONLY_OURS + (("marshal", "zipimport") if "imports" in params.blocked else ()))
    if params.blocked:
        sys.addaudithook(hooking)
        installed.append("hook")
    return installed, launch


def _clear(unwanted: tuple[str, ...]) -> None:
    """Leave nothing of ours to be found by name; `start` and this module are still running."""
    for name in list(sys.modules):
        if name in unwanted:
            del sys.modules[name]
        elif name.partition(".")[0] == "_guard":
            module = sys.modules.pop(name)
            if name.rpartition(".")[2] not in ("_guard", "start", "install", "params"):
                module.__dict__.clear()


def _libraries(params: Params, stdlib: str) -> tuple[str, ...]:
    """Directories modules come from: the standard library's, and site directories that are listed as readable."""
    found = [stdlib]
    for entry in sys.path:
        place = entry.replace("\\", "/").rstrip("/")
        listed = any(place == one or place.startswith(one.rstrip("/") + "/") for one in params.readable)
        ours = place.startswith(stdlib + "/") and place.endswith("lib-dynload")
        if (listed or ours) and place not in found and os.path.isdir(place) and not _within(place, params.root):
            found.append(place)
    return tuple(found)


def _within(path: str, root: str) -> bool:
    return (os.path.realpath(path) + "/").startswith(os.path.realpath(root).rstrip("/") + "/")
