"""What holds for all tests: how long an example may take is no property of ours, and CI tries the same ones each time."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "securebench",
    deadline=None,
    derandomize="SECUREBENCH_CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("securebench")

# A shell that puts a command into the background has it ignore Ctrl-C, and so would everything that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
