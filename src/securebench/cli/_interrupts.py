"""Ctrl-C where Python cannot raise it, in a callback of native code or `__del__`, raises something else from it, or
raises it out of a text that it executes.

All of it happens while models are made, which is most of what a command does in its first moments."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

import click

AGAIN_SECONDS = 0.02
_MOST_CAUSES = 100
_BUILDING = 'Error building "'


def deliver_lost_interrupts() -> None:
    """From now on an interrupt that native code drops, with a traceback, is sent once more a moment later."""
    sys.unraisablehook = partial(_deliver_again, sys.unraisablehook)


def was_interrupt(error: BaseException) -> bool:
    """Whether an error is what became of an interrupt: one that it was raised from or after, or that pydantic tells of
    while it builds a model."""
    for _ in range(_MOST_CAUSES):
        words = str(error)
        if isinstance(error, KeyboardInterrupt) or (words.startswith(_BUILDING) and "KeyboardInterrupt" in words):
            return True
        before = error.__cause__ or error.__context__
        if before is None:
            return False
        error = before
    return False


def end_interrupted() -> NoReturn:
    """Say so, and end with the exit code for it: not by the signal, as `python -m` would where the interrupt came out
    of an executed text, until it executes another."""
    sys.unraisablehook = lambda _: None  # what was half made complains when it is taken down
    exec("")  # noqa: S102
    click.echo("interrupted", err=True)
    sys.exit(130)


def _deliver_again(tell: Callable[[sys.UnraisableHookArgs], object], lost: sys.UnraisableHookArgs) -> None:
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        tell(lost)
        return
    while True:
        try:
            again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
            again.daemon = True
            with suppress(RuntimeError):  # no thread starts in an interpreter that ends, and that one ends anyway
                again.start()
            return
        except KeyboardInterrupt:  # sent again already, and this place would drop it for good
            continue
