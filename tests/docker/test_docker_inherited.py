"""What whoever started us left ignored, closed or set changes nothing in a container."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.docker.engine import Imaged

ENGINE = """
import json, signal, socket
import anyio
from securebench.sandboxes.base import *
from securebench.sandboxes.docker import DockerSandbox

SCRIPTS = {
    "signals": "grep -E 'SigIgn|SigBlk' /proc/self/status",
    "umask": "umask; pwd; : > made; chmod +x made; [ -x made ] && echo executable",
    "descriptors": "echo /proc/self/fd/*",
    "interrupted": "kill -INT $$; sleep 5",
    "broken pipe": "yes | head -n 1; echo end",
}

async def main():
    seen = {}
    spec = SandboxSpec(root=ImageRoot("securebench-base:test"), mounts=(Scratch("/work"),), cwd="/work")
    ours, theirs = socket.socketpair()
    async with DockerSandbox().open(spec) as session:
        for name, script in SCRIPTS.items():
            result = await session.run(Command(("/bin/sh", "-c", script)))
            seen[name] = [result.outcome, result.exit_code, result.signal, result.stdout.data.decode()]
        ours.sendall(b"through a channel")
        ours.shutdown(socket.SHUT_WR)
        await session.run(Command(("cat",), channels={0: theirs, 1: theirs}))
        seen["channel"] = ours.recv(100).decode()
        timed = await session.run(Command(("sleep", "60"), wall_seconds=0.5))
        seen["timed"] = timed.outcome
        await session.stop()
        with open(f"/proc/self/fd/{session.scratch('/work')}/made") as file:
            seen["captured"] = file.read()
    ignored = [number for number in (1, 2, 3, 15) if signal.getsignal(number) is signal.SIG_IGN]
    print(json.dumps([ignored, seen]))

anyio.run(main)
"""


def _run(words: str, directory: Path) -> tuple[list[int], dict[str, object]]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    argv = ["/bin/sh", "-c", f'{words} exec "$0" -c "$1"', sys.executable, ENGINE]
    done = subprocess.run(argv, cwd=directory, env=env, stdout=subprocess.PIPE, timeout=300, check=True)
    ignored, seen = json.loads(done.stdout)
    return ignored, seen


def test_inherited_signals_umask_and_directory_change_nothing(sandbox: Imaged, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    plain = _run("", tmp_path)[1]
    ignored, odd = _run(f"trap '' HUP INT QUIT TERM PIPE USR1; umask 077; rmdir {gone}; exec <&-;", gone)
    assert ignored == [1, 2, 3, 15], "the control: they were ignored"
    assert odd == plain
    assert plain["channel"] == "through a channel"
    assert plain["interrupted"] == ["signalled", None, 2, ""]
    assert plain["timed"] == "timeout"
