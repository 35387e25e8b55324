"""The process that starts sandboxes: what it starts is exactly what was asked for."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time

import anyio
import pytest

from securebench._proc import Pipe
from securebench.sandboxes._launch import client as _client
from securebench.sandboxes._launch.client import Program, spawn


def _output(script: str, **how: object) -> str:
    """What a shell started with these properties prints."""
    pipe = Pipe(*os.pipe())
    descriptors = [(0, subprocess.DEVNULL), (1, pipe.write), (2, pipe.write)]
    program = Program(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}, descriptors, **how)  # type: ignore[arg-type]
    process = spawn(program)
    pipe.close_write()
    with open(pipe.read, "rb") as stream:
        data = stream.read()
    anyio.run(process.ended)
    process.close()
    return data.decode()


def test_it_inherits_nothing_but_what_is_named() -> None:
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    try:
        assert _output("ls /proc/self/fd").split() == ["0", "1", "2", "3"]  # 3 is the listing
    finally:
        os.close(leaked)
    assert "PATH=/usr/bin:/bin" in _output("env").splitlines()
    assert not {"HOME", "USER", "PYTHONPATH"} & {line.split("=")[0] for line in _output("env").splitlines()}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_it_is_the_named_user_and_nobody_else() -> None:
    seen = _output("id -u; id -g; id -G; grep -E 'CapInh|CapPrm|CapEff' /proc/self/status", uid=61997).split()
    assert seen[:3] == ["61997"] * 3
    assert {int(word, 16) for word in seen[4::2]} == {0}


def test_limits_and_signals_are_as_asked_for() -> None:
    limits = f"{resource.RLIMIT_NOFILE}:77:78 {resource.RLIMIT_CORE}:0:0".encode()
    assert _output("ulimit -n; ulimit -Hn; ulimit -c", limits=limits).split() == ["77", "78", "0"]
    masks = _output("grep -E 'SigIgn|SigBlk' /proc/self/status", ignored=(signal.SIGUSR1,)).split()
    assert [int(mask, 16) for mask in masks[1::2]] == [0, 1 << (signal.SIGUSR1 - 1)]


def test_program_that_cannot_be_started_says_so_on_its_standard_error() -> None:
    pipe = Pipe(*os.pipe())
    null = subprocess.DEVNULL
    process = spawn(Program(("/no/such/program",), {}, [(0, null), (1, null), (2, pipe.write)]))
    pipe.close_write()
    with open(pipe.read, "rb") as stream:
        assert stream.read() == b"cannot start /no/such/program: No such file or directory\n"
    anyio.run(process.ended)
    process.close()


def test_it_serves_several_threads_at_once() -> None:
    seen: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda at=at: seen.__setitem__(at, _output(f"echo {at}"))) for at in range(8)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == {at: f"{at}\n" for at in range(8)}


def test_killed_spawner_takes_its_programs_along() -> None:
    marker = f"63.{time.time_ns()}"
    null = subprocess.DEVNULL
    process = spawn(Program(("/bin/sleep", marker), {}, [(0, null), (1, null), (2, null)]))
    _client._current[0]._process.kill()

    async def gone() -> None:
        with anyio.fail_after(30):
            await process.ended()

    anyio.run(gone)
    process.close()
    assert _output("echo again") == "again\n"


# The sweep is tried inside a sandbox: were the check missing, it would end every process it can see.
SWEEP = """
import os, socket, subprocess, sys, time
sys.path.append("/sb")
from securebench.sandboxes._bubblewrap import joiner
canary = subprocess.Popen(["sleep", "30"])
if sys.argv[1] == "unchecked":
    os.getppid = lambda: 0
joiner.Joiner(socket.socketpair()[0]).sweep()
time.sleep(0.2)
print("alive" if canary.poll() is None else "dead", flush=True)
canary.kill()
"""


@pytest.mark.parametrize("check,expected", [("checked", ("alive", None)), ("unchecked", ("", signal.SIGKILL))])
def test_sweep_outside_a_namespace_of_its_own_is_refused(check: str, expected: tuple[str, int | None]) -> None:
    from pathlib import Path

    from tests.conformance.sandbox.box import PYTHON

    import securebench
    from securebench.sandboxes.base import Bind, Command, Limits, SandboxSpec, run_once
    from securebench.sandboxes.bubblewrap import BubblewrapSandbox

    sandbox = BubblewrapSandbox()
    if not anyio.run(sandbox.probe).usable:
        pytest.skip("bubblewrap is not usable here")
    package = Path(securebench.__file__).parent
    spec = SandboxSpec(mounts=(Bind(package, "/sb/securebench"),), limits=Limits(wall_seconds=30))
    result = anyio.run(run_once, sandbox, spec, Command((PYTHON, "-I", "-B", "-c", SWEEP, check)))
    assert (result.stdout.data.decode().strip(), result.signal) == expected, result.stderr


def test_interpreter_of_the_spawner_imports_little() -> None:
    """It is forked for every sandbox, so what it holds is copied every time."""
    program = "import sys; sys.path.append(sys.argv[1]); import securebench.sandboxes._launch.spawner; print(len(sys.modules))"
    source = os.path.dirname(os.path.dirname(_client.__file__))
    root = os.path.dirname(os.path.dirname(source))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, root], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 70
