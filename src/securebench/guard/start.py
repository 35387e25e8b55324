"""The order of things: parameters, report, program read, seal, imports locked, hook, program."""

# pathlib costs milliseconds at start-up.
# ruff: noqa: PTH123

from __future__ import annotations

import os
import sys

from .params import Params
from .report import first_line
from .rules import EXIT_GUARD, EXIT_PARAMETERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def start(argv: list[str]) -> NoReturn:
    """Run the program the parameters name. Never returns; 120 and 121 as in `rules`."""
    try:
        if len(argv) != 1:
            raise ValueError(f"expected one argument with the parameters, got {len(argv)}")
        params = Params(argv[0])
        report = _open_report(params.report)
        source = _read(params.program)
        os.chdir(params.root)
    except (ValueError, OSError, RecursionError) as error:
        _end(EXIT_PARAMETERS, f"parameters: {error}")
    try:
        launch, namespace = _prepare(params, report, source)
    except BaseException as error:  # noqa: BLE001 — nothing may run past a guard that is not whole
        _end(EXIT_GUARD, f"could not be installed: {type(error).__name__}: {error}")
    del source
    launch(namespace)
    os._exit(EXIT_GUARD)


def _prepare(params: Params, report: int, source: bytes) -> tuple[Any, dict[str, object]]:
    """Install everything. Raises RuntimeError when a required part is missing."""
    from .install import install

    os.environ["AIBB_TMP"] = params.root
    os.environ["TMPDIR"] = params.root
    sys.argv = [params.program, *params.args]
    main = type(sys)("__main__")
    main.__dict__.update(__file__=params.program, __builtins__=sys.modules["builtins"], __cached__=None)
    installed, launch = install(params, report, source)
    missing = [name for name in params.require if name not in installed]
    if missing:
        raise RuntimeError(f"required and not there: {', '.join(missing)} (there: {', '.join(installed)})")
    if report >= 0:
        os.write(report, first_line(installed))
    sys.modules["__main__"] = main
    return launch, main.__dict__


def _open_report(where: str | int) -> int:
    if isinstance(where, int):
        os.fstat(where)
        os.set_inheritable(where, False)
        return where
    if not where:
        return -1
    return os.open(where, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _end(status: int, message: str) -> NoReturn:
    os.write(2, f"guard: {message}\n".encode("utf-8", "replace"))
    os._exit(status)
