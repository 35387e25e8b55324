"""The programs of the rooms: each one text that needs nothing but a Python of its image."""

from __future__ import annotations

from functools import cache

from securebench._one_file import call_main, our_modules
from securebench.sandboxes.base import PythonProgram

PREFIX = "room_"
_HERE = "verifiers.rooms."
CHANNEL = (_HERE + "codec", _HERE + "inside.pipe")
_SHARED = (*CHANNEL, _HERE + "inside.late_site")
_WORKER = (*_SHARED, _HERE + "inside.worker")
_DRIVER = (
    *_SHARED,
    *(
        f"{_HERE}inside.{name}"
        for name in ("remote", "foreign_code", "record", "names", "suite", "cases", "under_pytest", "driver")
    ),
)


@cache
def worker_program() -> PythonProgram:
    """What runs beside the candidate's code."""
    return program(_WORKER, _HERE + "inside.rehearsal_worker")


@cache
def driver_program() -> PythonProgram:
    """What runs the tests."""
    return program(_DRIVER, _HERE + "inside.rehearsal_driver")


def program(modules: tuple[str, ...], *rehearsal: str) -> PythonProgram:
    """These modules, and a call of the last one's `main`; it talks on its standard input and output."""
    ours = our_modules((*modules, *rehearsal), PREFIX)
    ours, more = ours[: len(modules)], ours[len(modules) :]
    return PythonProgram(ours, call_main(ours), ("0", "1"), more)
