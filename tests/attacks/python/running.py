"""One hostile program, run: plainly inside the stage, or through `run_python` as everything else is."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import anyio
from tests.attacks.python.programs.resources import LIMITS
from tests.attacks.python.world import Ran, World

from securebench.errors import SecureBenchError
from securebench.execution.interpreter import find_interpreter
from securebench.execution.isolation import Isolation
from securebench.execution.request import Policy, PythonLimits, PythonRequest, PythonResult
from securebench.execution.run import run_python
from securebench.sandboxes.base import Outcome

PATIENCE = 60.0


def request_for(world: World, policy: Policy) -> PythonRequest:
    """The program with the limits its attack is aimed at."""
    limits = {**LIMITS, **world.attack.limits}
    return PythonRequest(
        world.source,
        args=(world.mark,),
        policy=policy,
        limits=PythonLimits(
            timeout=limits["wall"],
            memory=int(limits["memory"]),
            cpu_seconds=limits["cpu"],
            pids=int(limits["pids"]),
            output=int(limits["output"]),
            disk=int(limits["disk"]),
            file_size=int(limits["file_size"]),
            open_files=int(limits["open_files"]),
        ),
    )


def seen_by_us(world: World, result: PythonResult) -> Ran:
    streams = (result.stdout, result.stderr)
    # What is read of a flood while its writer is being ended is counted and thrown away; only what is kept costs us.
    flooded = result.outcome is Outcome.OUTPUT_LIMIT
    total = max(len(stream.data) if flooded else stream.total for stream in streams)
    note = "; ".join(sorted({blocked.operation for blocked in result.blocked}))[:200]
    words = result.stderr.data.decode("utf-8", "replace").strip().splitlines()
    measured = {"output": float(total), "orphans": float(len(world.processes()))}
    return Ran(result.stdout.data, measured, note=note or f"{result.outcome}: {(words or [''])[-1][:160]}")


async def run_at(world: World, level: str | Isolation, policy: Policy, *, seal: bool = True) -> Ran:
    """Through the one way in. An error of ours is not a defence: it ends the test."""
    return seen_by_us(world, await run_python(request_for(world, policy), level, seal=seal))


def run_on_stage(mode: str, world: World) -> Ran:
    """Raises SystemExit outside the container."""
    from tests.attacks.python.stage import HOSTNAME

    if os.uname().nodename != HOSTNAME or os.geteuid() == 0:
        raise SystemExit("refused: hostile programs run unprotected only on the stage")
    if mode == "control":
        return _plain(world)
    try:
        return anyio.run(partial(run_at, world, "guard", Policy.STRICT, seal=mode == "sealed"))
    except SecureBenchError as error:
        return Ran(b"", note=f"ERROR {error}"[:300])


def _plain(world: World) -> Ran:
    """No guard, no seal, no limits: what the program does when nothing stops it."""
    root = world.outside.parent / f"root-{secrets.token_hex(4)}"
    root.mkdir()
    (root / "program.py").write_bytes(world.source)
    env = {"AIBB_TMP": str(root), "HOME": str(root), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    argv = [find_interpreter().program, "-I", "-B", "program.py", world.mark]
    began = time.monotonic()
    process = subprocess.Popen(
        argv, cwd=root, env=env, stdin=-3, stdout=-1, stderr=-1, start_new_session=True, close_fds=False
    )
    sampler = Sampler(process.pid, root, world) if world.attack.resource else None
    timer = threading.Timer(PATIENCE, world.end_leftovers)
    timer.start()
    out, err = b"", b""
    try:
        if world.attack.seen.value == "orphan":
            # Its children keep our pipe open, on purpose; the program itself ends at once.
            process.wait(PATIENCE)
            orphans = len(world.processes())
            world.end_leftovers()
            assert process.stderr is not None
            return Ran(b"", {"orphans": orphans}, note=process.stderr.read().decode()[-200:])
        out, err = process.communicate(timeout=PATIENCE + 5)
    finally:
        timer.cancel()
        orphans = world.end_leftovers()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        measured = sampler.finish() if sampler else {}
        shutil.rmtree(root, ignore_errors=True)
    wall = time.monotonic() - began
    measured |= {"output": max(len(out), len(err)), "wall": wall, "cpu": _children_cpu(), "orphans": orphans}
    return Ran(out, measured, note=err.decode("utf-8", "replace").strip()[-200:])


_cpu_before = 0.0


def _children_cpu() -> float:
    """Processor time of everything we waited for since the last call; a worker runs one program at a time."""
    global _cpu_before
    times = os.times()
    now = times.children_user + times.children_system
    used, _cpu_before = now - _cpu_before, now
    return used


class Sampler:
    """Looks at a running program and its children every few milliseconds; keeps the highest of everything."""

    def __init__(self, pid: int, root: Path, world: World) -> None:
        self._pid, self._root, self._world = pid, root, world
        self._highest: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def finish(self) -> dict[str, float]:
        self._stop.set()
        self._thread.join()
        return self._highest

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            found = {"memory": 0.0, "pids": 0.0, "open_files": 0.0, "disk": 0.0, "file_size": 0.0}
            for pid in self._world.processes():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    self._look(Path(f"/proc/{pid}"), found)
            for path in self._root.iterdir():
                with contextlib.suppress(OSError):
                    found["file_size"] = max(found["file_size"], path.stat().st_size)
                    found["disk"] += path.stat().st_blocks * 512
            for name, value in found.items():
                self._highest[name] = max(value, self._highest.get(name, 0))

    @staticmethod
    def _look(process: Path, found: dict[str, float]) -> None:
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
        found["memory"] += int(status["VmRSS"].split()[0]) * 1024
        found["pids"] += int(status["Threads"])
        descriptors = list((process / "fd").iterdir())
        found["open_files"] = max(found["open_files"], len(descriptors))
        for descriptor in descriptors:
            with contextlib.suppress(OSError):
                if "(deleted)" in os.readlink(descriptor):
                    found["disk"] += os.stat(descriptor).st_blocks * 512
