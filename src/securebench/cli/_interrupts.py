"""Ctrl-C where Python cannot raise it: in a callback of native code, such as the core that makes models, or `__del__`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress

AGAIN_SECONDS = 0.02


def deliver_lost_interrupts() -> None:
    """From now on an interrupt that native code drops, with a traceback, is sent once more a moment later."""
    sys.unraisablehook = _deliver_again


def _deliver_again(lost: sys.UnraisableHookArgs) -> None:
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    with suppress(RuntimeError):  # no thread starts in an interpreter that ends, and that one ends anyway
        again.start()
