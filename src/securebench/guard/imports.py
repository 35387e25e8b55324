"""Imports locked to what was there before the program started.

Our finder is the only one the interpreter has, and our loader the only code that may run a module's code. It takes a
name, never a path: the standard library and listed site directories, which the program cannot write, and the
submitted modules, whose bytes were read before the program ran. So a file, a cache or an archive that the program
writes cannot become a module, whatever it does to `sys.path`, hooks, caches, specs or packages' paths.
"""

from __future__ import annotations

import os
import sys

from .bake import OWN, SECRET, TRUSTED, bake, bake_import
from .loader import (
    code_of,
    create_module,
    exec_module,
    hollow_getattr,
    hollow_module,
    make_module,
    mend_module,
    read_file,
    run_module,
)
from .rules import BANNED, BANNED_PREFIXES, HOLLOW, PROGRAM_ONLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ONCE = frozenset({"posix", "nt", "_imp", "builtins", "sys", "marshal", "_signal", "_thread", "gc"})
"""Builtin modules that the guard has changed or relies on: a second copy would be unchanged."""


def locate(name: Any) -> Any:
    """Where a module comes from: (kind, path, directory of a package or None, source or None); None for nowhere."""
    kind: Any = "@type"
    text: Any = "@str"
    submitted: Any = "@submitted"
    tops: Any = "@tops"
    builtin: Any = "@builtin"
    directories: Any = "@directories"
    suffixes: Any = "@suffixes"
    stat: Any = "@stat"
    absent: Any = "@absent"
    if kind(name) is not text:
        return None
    parts = name.split(".")
    for part in parts:
        if not part or "/" in part or "\\" in part or "\0" in part:
            return None
    if parts[0] in tops:
        for known, path, package, source in submitted:
            if known == name:
                return "source", path, package, source
        return None
    if name in builtin:
        return "builtin", "built-in", None, None
    tail = "/" + "/".join(parts)
    for directory in directories:
        base = directory + tail
        try:
            is_directory = stat(base).st_mode & 0o170000 == 0o040000
        except absent:
            is_directory = False
        if is_directory:
            try:
                stat(base + "/__init__.py")
            except absent:
                pass
            else:
                return "library", base + "/__init__.py", base, None
        for suffix in suffixes:
            try:
                stat(base + suffix)
            except absent:
                continue
            return ("library" if suffix == ".py" else "extension"), base + suffix, None, None
        if is_directory:
            return "namespace", None, base, None
    return None


def is_banned(name: str) -> bool:
    """Whether nobody but the standard library's own top level may ask for this module."""
    banned: Any = "@banned"
    prefixes: Any = "@prefixes"
    tops: Any = "@tops"
    top = name.partition(".")[0]
    return top not in tops and (top in banned or top.startswith(prefixes))


def find_spec(self: Any, name: Any, path: Any = None, target: Any = None) -> Any:  # noqa: ARG001
    """What the import system asks. Raises the denial for banned modules and for reloading."""
    kind_of: Any = "@type"
    text: Any = "@str"
    locate: Any = "@locate"
    banned: Any = "@is_banned"
    internal: Any = "@internal"
    refuse: Any = "@refuse"
    getframe: Any = "@getframe"
    caller_of: Any = "@caller_of"
    is_library: Any = "@is_library"
    make_spec: Any = "@spec"
    loader: Any = "@loader"
    reload_blocked: Any = "@reload_blocked"
    hollowed: Any = "@hollowed"
    if kind_of(name) is not text:
        return None
    hollow = False
    if banned(name) or name in internal:
        file, function = caller_of(getframe(1))
        if not is_library(file) or (banned(name) and function != "<module>"):
            raise refuse(("imports", "import of " + name), getframe(1))
        if banned(name) and name.partition(".")[0] not in hollowed:
            return None  # libraries do without it
        hollow = banned(name)
    if target is not None and reload_blocked:
        raise refuse(("reload", "reload of " + name), getframe(1))
    if hollow:
        spec = make_spec(name, loader, origin="blocked", is_package=True)
        spec.submodule_search_locations = []
        return spec
    found = locate(name)
    if found is None:
        return None
    kind, path, package, _ = found
    if kind == "namespace":
        spec = make_spec(name, None, is_package=True)
        spec.submodule_search_locations = [package]
        return spec
    spec = make_spec(name, loader, origin=path, is_package=package is not None)
    if package is not None:
        spec.submodule_search_locations = [package]
    if kind != "builtin":
        spec.has_location = True
    return spec


def lock(
    directories: tuple[str, ...],
    submitted: list[tuple[str, str, str | None, bytes]],
    tops: list[str],
    tools: Any,
    stubs: tuple[Any, ...],
) -> None:
    """Make our finder the only one. `tools` has refuse, caller_of, is_library, allowed_modules, reload_blocked."""
    import _imp
    import marshal
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import EXTENSION_SUFFIXES, MAGIC_NUMBER

    banned = bake(
        is_banned, banned=BANNED - tools.allowed_modules, tops=frozenset(tops),
        prefixes=tuple(one for one in BANNED_PREFIXES),
    )  # fmt: skip
    absent = (OSError, ValueError, EOFError)
    located = bake(
        locate, type=type, str=str, submitted=tuple(submitted), tops=frozenset(tops),
        builtin=frozenset(sys.builtin_module_names), directories=directories,
        suffixes=(*EXTENSION_SUFFIXES, ".py"), stat=os.stat, absent=absent,
    )  # fmt: skip
    shared = {
        "locate": located,
        "is_banned": banned,
        "refuse": tools.refuse,
        "getframe": sys._getframe,
        "str": str,
        "type": type,
    }
    getattr_ = bake(
        hollow_getattr, missing=AttributeError, refuse=tools.refuse, getframe=sys._getframe, str=str, type=type
    )
    hollow = bake(hollow_module, module=type(sys), getattr=getattr_)
    mend = bake(mend_module, stubs=stubs)
    tag = "." + sys.implementation.cache_tag + ".pyc" if sys.implementation.cache_tag and not sys.flags.optimize else ""
    reading = bake(read_file, TRUSTED, fileio=sys.modules["_io"].FileIO, is_library=tools.is_library)
    coding = bake_import(
        code_of, TRUSTED, locate=located, read=reading, stat=os.stat, compile=compile, load=marshal.loads,
        rename=_imp.__dict__["_fix_co_filename"], magic=MAGIC_NUMBER, tag=tag, absent=(*absent, TypeError),
        number=int.from_bytes,
    )  # fmt: skip
    running = bake_import(
        run_module, TRUSTED, code_of=coding, exec=exec, bless=tools.bless, type=type, str=str, dict=dict
    )
    making = bake(
        make_module, SECRET, locate=located, namespace=type(sys.implementation), create_builtin=_imp.create_builtin,
        create_dynamic=_imp.create_dynamic, mend=mend, everything=BaseException, is_banned=banned, once=_ONCE,
    )  # fmt: skip
    loader_type = type("LockedLoader", (), {
        "create_module": bake_import(
            create_module, OWN, **shared, hollow=hollow, make_module=making, failure=BaseException,
            issubclass=issubclass,
        ),
        "exec_module": bake_import(
            exec_module, OWN, **shared, run_module=running, exec_builtin=_imp.exec_builtin,
            exec_dynamic=_imp.exec_dynamic, modules=sys.modules, builtins=sys.modules["builtins"],
            absent=ImportError, forget=tuple(sorted(BANNED - tools.allowed_modules)), mend=mend,
        ),
    })  # fmt: skip
    finder_type = type("LockedFinder", (), {
        "find_spec": bake_import(
            find_spec, OWN, **shared, internal=PROGRAM_ONLY, caller_of=tools.caller_of, is_library=tools.is_library,
            spec=ModuleSpec, loader=loader_type(), reload_blocked=tools.reload_blocked, hollowed=HOLLOW,
        ),
    })  # fmt: skip
    for one in (loader_type, finder_type):
        one.__module__ = "builtins"
    sys.meta_path[:] = [finder_type()]
    sys.path_importer_cache.clear()
    external = sys.modules["_frozen_importlib_external"]
    if "marshal" not in tools.allowed_modules:
        external.marshal = hollow("marshal")  # type: ignore[attr-defined]
