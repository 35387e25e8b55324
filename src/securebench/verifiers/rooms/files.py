"""The programs of the rooms: each one text that needs nothing but a Python of its image."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_PACKAGE = "securebench.verifiers.rooms."
_SHARED = ("codec", "inside/pipe", "inside/late_site")
_WORKER = (*_SHARED, "inside/worker")
_DRIVER = (
    *_SHARED,
    "inside/remote",
    "inside/foreign_code",
    "inside/record",
    "inside/names",
    "inside/suite",
    "inside/cases",
    "inside/under_pytest",
    "inside/driver",
)

_LOADER = """import sys, types
def load(name, source):
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
"""


@cache
def worker_program() -> str:
    """What runs beside the candidate's code."""
    return one_file(_WORKER)


@cache
def driver_program() -> str:
    """What runs the tests."""
    return one_file(_DRIVER)


def one_file(modules: tuple[str, ...]) -> str:
    """The modules in this order, each in its own namespace, and a call of the last one's `main`."""
    parts = [_LOADER]
    for module in modules:
        source = (_HERE / f"{module}.py").read_text(encoding="utf-8")
        source = source.replace(_PACKAGE + "inside.", "room_").replace(_PACKAGE, "room_")
        parts.append(f"load({_name(module)!r}, {source!r})\n")
    parts.append(f"sys.modules[{_name(modules[-1])!r}].main()\n")
    return "".join(parts)


def _name(module: str) -> str:
    return "room_" + module.rpartition("/")[2]
