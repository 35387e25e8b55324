"""A command starts with default signals, whatever the engine's own parent left ignored or blocked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.conformance.sandbox.box import Box

# Ignores and blocks all that can be, by the kernel's own calls: the C library hides 32 and 33, which it uses itself.
# Both survive the exec of the engine, as they do from a parent that left them so.
DEAF = """
import ctypes, os, sys
action, mask = {"x86_64": (13, 14)}.get(os.uname().machine, (134, 135))
libc = ctypes.CDLL(None, use_errno=True)
for number in range(1, 65):
    libc.syscall(action, number, (1).to_bytes(8, "little") + bytes(56), None, 8)
libc.syscall(mask, 0, b"\\xff" * 8, None, 8)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""

ENGINE = """
import sys
import anyio
from securebench.sandboxes.base import *
from securebench.sandboxes.select import make_sandbox

look = "grep -E 'SigIgn|SigBlk' /proc/self/status; kill -PIPE $$"
async def main():
    print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn"))])
    for mounts in ((), (Scratch("/work"),)):
        spec = SandboxSpec(mounts=mounts, require=frozenset(), limits=Limits(wall_seconds=60))
        result = await run_once(make_sandbox(sys.argv[1]), spec, Command(("/bin/sh", "-c", look)))
        print(*result.stdout.data.decode().split()[1::2], result.outcome, result.signal)
anyio.run(main)
"""


@pytest.mark.parametrize("backend", ["bubblewrap", "guarded"])
def test_command_of_a_deaf_engine_hears_every_signal(bubblewrap: Box, backend: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", DEAF, "-c", ENGINE, backend]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    engine, fresh, session = done.stdout.splitlines()
    blocked, ignored = (int(mask, 16) for mask in engine.split())
    internal = 1 << 31 | 1 << 32
    assert ignored & internal == internal  # the control: the engine itself was deaf
    assert blocked & internal == internal
    assert ignored & 0x1007 == 0x1007  # HUP, INT, QUIT, PIPE
    nothing = "0" * 16
    assert fresh == session == f"{nothing} {nothing} signalled 13"
