"""Leaving early, hooks at the end, and output that looks like success."""

from __future__ import annotations

from securebench.audit.attacks.g_forging.tasks import WRONG, forged
from securebench.errors import FailureReason

_CRASHED = (FailureReason.WORKER_CRASHED,)
_SPRAY = """
import os
for fd in range(1, 260):
    try: os.write(fd, b'\\nALL TESTS PASSED\\nOK\\nok 1\\n3 passed in 0.01s\\n')
    except OSError: pass
"""

ATTACKS = (
    forged("G01", "sys-exit", "The module leaves with status 0 while it is imported.",
           "import sys\nsys.exit(0)", "exit"),
    forged(
        "G01", "hard-exit", "The process ends with status 0 while it is imported.", "import os\nos._exit(0)", "exit",
        expect=_CRASHED,
    ),
    forged(
        "G01", "hard-exit-in-call", "The first call ends the process with status 0.",
        "import os\ndef sq(xs): os._exit(0)", "exit", expect=_CRASHED,
    ),
    forged(
        "G01", "system-exit-in-call", "The first call raises SystemExit with status 0.",
        "def sq(xs): raise SystemExit(0)", "exit",
    ),
    forged(
        "G01", "exit-in-thread", "A second thread ends the process while the call waits.",
        "import os, threading, time\ndef sq(xs):\n"
        "    threading.Thread(target=os._exit, args=(0,)).start()\n    time.sleep(5)",
        "exit", expect=_CRASHED,
    ),
    forged(
        "G01", "failure-is-exit", "AssertionError is made another name of SystemExit, which the call raises.",
        "import builtins\nbuiltins.AssertionError = SystemExit\ndef sq(xs): raise SystemExit(0)", "exit",
    ),
    forged(
        "G02", "atexit", "A function that runs at the end turns the status into 0.",
        "import atexit, os\natexit.register(lambda: os._exit(0))\n" + WRONG, "exit",
    ),
    forged(
        "G02", "excepthook", "What runs for an uncaught exception turns the status into 0.",
        "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\n" + WRONG, "exit",
    ),
    forged(
        "G02", "finaliser", "An object that is destroyed at the end turns the status into 0.",
        "import os\nclass D:\n    def __del__(self, exit=os._exit): exit(0)\nkeep = D()\n" + WRONG, "exit",
    ),
    forged(
        "G02", "prints-at-the-end", "A function that runs at the end prints what a good run prints.",
        "import atexit, os\natexit.register(lambda: os.write(1, b'ALL TESTS PASSED\\n'))\n" + WRONG, "marker",
    ),
    forged(
        "G03", "marker", "The line that means success is printed, and the process ends.",
        "import os\nprint('ALL TESTS PASSED', flush=True)\nos._exit(0)", "exit marker",
    ),
    forged(
        "G03", "every-descriptor", "Words that mean success are written to every open descriptor.", _SPRAY + WRONG,
        "marker",
    ),
    forged(
        "G03", "summary-of-unittest", "The summary of a good unittest run is printed, and the process ends.",
        "import os, sys\nsys.stderr.write('Ran 3 tests in 0.001s\\n\\nOK\\n')\nsys.stderr.flush()\nos._exit(0)",
        "exit unittest",
    ),
)  # fmt: skip
