"""The canaries, run through the one way in that strangers' programs take, and judged row by row.

Each layer is looked at alone as well, because two walls hide each other's holes: the guard without the kernel, the seal
without a backend, the backend without seal or guard. Only our own, harmless programs run here.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from securebench import _proc
from securebench._json import JsonError, loads
from securebench._leftovers import staging_directory
from securebench.audit.canaries import BACKEND, GUARD_CANARIES, KERNEL_CANARIES, LIMITS, SEAL
from securebench.audit.limits import LIMIT_CANARIES, ORPHAN
from securebench.audit.result import Check, Group
from securebench.audit.warm_rooms import check_succession, run_in, warm_rooms
from securebench.errors import SecureBenchError
from securebench.execution.isolation import GUARD, Isolation
from securebench.execution.request import REPORT_FD, Policy, PythonLimits, PythonRequest, PythonResult
from securebench.execution.run import run_python
from securebench.sandboxes.base import MIB, Command, SandboxResult, SandboxSpec, Scratch, run_once
from securebench.sandboxes.canary import run_canary

_PROGRAMS = Path(__file__).parent / "programs"
_KERNEL_LIMITS = PythonLimits(
    timeout=30, memory=256 * MIB, pids=24, disk=4 * MIB, file_size=8 * MIB, open_files=64, output=MIB
)
_ROOT = "/aibb"
_HOSTS = ("/root", "/home", "/etc", "/var", "/tmp", "/run", "/opt", "/srv", "/boot")  # noqa: S108 — looked for inside
_INSTALLED = ("hook", "imports", "landlock", "no_new_privs", "rlimits", "seccomp")


@dataclass(frozen=True, slots=True)
class Outside:
    """What canaries reach for: a directory, a listener and a process of ours."""

    directory: Path
    port: int
    watcher: int
    mark: str


Rows = Awaitable[list[Check]]


async def check_children(isolation: Isolation, groups: frozenset[Group]) -> list[Check]:
    """Run every canary of these groups side by side. Never raises for a canary: what could not run has not passed."""
    found: list[Check] = []
    with ExitStack() as stack:
        outside, watcher = _lay_out(stack)
        try:
            jobs = list(_jobs(isolation, groups, outside))
            async with anyio.create_task_group() as tasks:
                for job in jobs:
                    tasks.start_soon(_collect, job, found)
        finally:
            await watcher.close()
    return sorted(found, key=lambda check: (list(Group).index(check.group), check.id))


def _lay_out(stack: ExitStack) -> tuple[Outside, _proc.Process]:
    directory = stack.enter_context(staging_directory())
    directory.chmod(0o777)  # who runs inside is another user; permission bits must not be the wall
    for name in ("file", "spare"):
        (directory / name).write_text("of the audit's")
        (directory / name).chmod(0o666)
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    mark = secrets.token_hex(12)
    watcher = _proc.start(["/bin/sleep", "120", "0", f"0.{int(mark, 16)}"], env={})
    told = Outside(directory, listener.getsockname()[1], watcher.pid, f"0.{int(mark, 16)}")
    return told, watcher


def _jobs(
    isolation: Isolation, groups: frozenset[Group], outside: Outside
) -> Iterable[tuple[Group, Callable[[], Rows]]]:
    if Group.GUARD in groups:
        yield Group.GUARD, partial(_guard, "guard alone", outside, GUARD, seal=False)
        yield Group.GUARD, partial(_guard, f"guard in {isolation.level}", outside, isolation, seal=True)
    if Group.SEAL in groups:
        yield Group.SEAL, partial(_kernel, Group.SEAL, SEAL, outside, GUARD)
    if Group.BACKEND in groups and not isolation.on_host:
        yield Group.BACKEND, partial(_backend, isolation, outside)
        yield Group.BACKEND, partial(_walls, isolation)
        yield Group.BACKEND, partial(_warm, isolation, outside)
    if Group.KERNEL in groups and not isolation.on_host:
        yield Group.KERNEL, partial(_kernel, Group.KERNEL, "", outside, isolation)
    if Group.LIMITS in groups:
        for name in LIMITS:
            yield Group.LIMITS, partial(_limit, name, isolation)
    if Group.ORPHANS in groups:
        yield Group.ORPHANS, partial(_orphans, isolation)


async def _collect(job: tuple[Group, Callable[[], Rows]], found: list[Check]) -> None:
    group, run = job
    try:
        found += await run()
    except (SecureBenchError, OSError) as error:
        found.append(Check(f"{group.value}: could not be looked at", group, False, str(error)[:500]))


async def _guard(title: str, outside: Outside, level: str | Isolation, *, seal: bool) -> list[Check]:
    request = PythonRequest(
        _source("guard_canaries.py"), "guard_canaries.py", args=(str(outside.directory),), limits=_KERNEL_LIMITS
    )
    result = await run_python(request, level, seal=seal)
    seen = _told(result)
    rows = [_row(f"{title}: {name}", Group.GUARD, seen.get(name), "guard", result) for name in GUARD_CANARIES]
    rows += _unknown(title, Group.GUARD, seen, GUARD_CANARIES)
    wanted = _INSTALLED if seal else _INSTALLED[:2]
    missing = [part for part in wanted if part not in result.installed]
    detail = f"not installed: {', '.join(missing)}" if missing else ", ".join(result.installed)
    rows.append(Check(f"{title}: every part is installed", Group.GUARD, not missing, detail))
    reported = {blocked.operation for blocked in result.blocked}
    rows.append(
        Check(f"{title}: blocked operations are reported", Group.GUARD, len(reported) >= 10, f"{len(reported)} kinds")
    )
    return rows


def _names(layer: str) -> list[str]:
    """The kernel canaries that a layer has to stop alone; all of them for no layer in particular."""
    return [name for name, layers in KERNEL_CANARIES.items() if not layer or layer in layers]


async def _kernel(group: Group, layer: str, outside: Outside, level: str | Isolation) -> list[Check]:
    """The kernel's walls with the guard's rules left out: all of them, or the seal without a backend."""
    request = PythonRequest(
        _source("kernel_canaries.py"),
        "kernel_canaries.py",
        args=(_what_to_try(outside, _names(layer)),),
        policy=Policy.OFF,
        limits=_KERNEL_LIMITS,
    )
    result = await run_python(request, level)
    title = "seal alone" if layer else "kernel without guard"
    seen = _told(result)
    return [_row(f"{title}: {name}", group, seen.get(name), "blocked", result) for name in _names(layer)]


async def _backend(isolation: Isolation, outside: Outside) -> list[Check]:
    """The backend with nothing of ours inside the process: neither guard nor seal nor limits of its own."""
    interpreter = isolation.interpreter
    spec = SandboxSpec(
        root=isolation.root,
        mounts=(Scratch(_ROOT, _KERNEL_LIMITS.disk), *interpreter.mounts),
        cwd=_ROOT,
        limits=_KERNEL_LIMITS.for_sandbox(_KERNEL_LIMITS.disk),
    )
    text = _source("kernel_canaries.py").decode()
    argv = (interpreter.program, "-I", "-B", "-c", text, _what_to_try(outside, _names(BACKEND)))
    result = await run_once(isolation.sandbox, spec, Command(argv))
    seen = _told(result)
    return [
        _row(f"backend alone: {name}", Group.BACKEND, seen.get(name), "blocked", result) for name in _names(BACKEND)
    ]


async def _warm(isolation: Isolation, outside: Outside) -> list[Check]:
    """The same in a warm room, where this host has them, and what one of them leaves to the next."""
    async with warm_rooms(isolation.sandbox, isolation.root) as rooms:
        if rooms is None:
            return []
        text, names = _source("kernel_canaries.py").decode(), _names(BACKEND)
        limits = _KERNEL_LIMITS.for_sandbox(_KERNEL_LIMITS.disk)
        result = await run_in(rooms, text, _what_to_try(outside, names), limits=limits)
        seen = _told(result)
        rows = [_row(f"warm room: {name}", Group.BACKEND, seen.get(name), "blocked", result) for name in names]
        return [*rows, await check_succession(rooms)]


def _what_to_try(outside: Outside, names: list[str]) -> str:
    """The argument of the kernel canaries, as JSON."""
    told = {
        "names": names,
        "outside": str(outside.directory),
        "port": outside.port,
        "watcher": outside.watcher,
        "mark": outside.mark,
        "open_files": _KERNEL_LIMITS.open_files,
        "file_size": _KERNEL_LIMITS.file_size,
        "disk": _KERNEL_LIMITS.disk,
        "pids": _KERNEL_LIMITS.pids,
        "descriptors": [REPORT_FD],
        "directories": {path: _identity(path) for path in _HOSTS if Path(path).exists()},
    }
    return json.dumps(told)


def _identity(path: str) -> list[int]:
    seen = Path(path).stat()
    return [seen.st_dev, seen.st_ino]


async def _walls(isolation: Isolation) -> list[Check]:
    spec = SandboxSpec(root=isolation.root, mounts=(Scratch(_ROOT),), cwd=_ROOT)
    missing = await run_canary(isolation.sandbox, spec)
    return [Check("walls as seen by a shell", Group.BACKEND, not missing, "; ".join(missing) or "as they must be")]


async def _limit(name: str, isolation: Isolation) -> list[Check]:
    canary = LIMIT_CANARIES[name]
    result = await run_python(PythonRequest(canary.program.encode(), limits=canary.limits), isolation)
    held, detail = canary.verdict(result)
    return [Check(f"limit: {name}", Group.LIMITS, held, detail)]


async def _orphans(isolation: Isolation) -> list[Check]:
    """A program that may fork leaves a daemon behind; when its run is over, the daemon is gone."""
    mark = secrets.token_hex(12)
    request = PythonRequest(
        ORPHAN.encode(), args=(mark,), policy=Policy.OFF, limits=PythonLimits(timeout=20, memory=256 * MIB)
    )
    result = await run_python(request, isolation, seal=False)
    forked = b"forked" in result.stdout.data
    left = [pid for pid in _processes() if mark in _command_line(pid)]
    if not forked:
        words = result.stderr.data[-200:].decode("utf-8", "replace").strip()
        return [Check("orphans: none is left", Group.ORPHANS, False, f"the canary could not fork: {words}")]
    return [Check("orphans: none is left", Group.ORPHANS, not left, f"{len(left)} left")]


def _processes() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def _command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _source(name: str) -> bytes:
    return (_PROGRAMS / name).read_bytes()


def _told(result: PythonResult | SandboxResult) -> Mapping[str, object]:
    """The last line a canary program printed; nothing where it did not come to its end."""
    lines = result.stdout.data.strip().splitlines()
    try:
        value = loads(lines[-1]) if lines else {}
    except JsonError:
        return {}
    return value if isinstance(value, dict) else {}


def _row(title: str, group: Group, seen: object, wanted: str, result: PythonResult | SandboxResult) -> Check:
    if seen is None:
        words = result.stderr.data[-300:].decode("utf-8", "replace").strip()
        return Check(title, group, False, f"not tried; the program ended with {result.outcome.value}: {words}")
    return Check(title, group, seen == wanted, str(seen))


def _unknown(title: str, group: Group, seen: Mapping[str, object], known: Iterable[str]) -> list[Check]:
    extra = sorted(set(seen) - set(known))
    return [Check(f"{title}: {name}", group, False, "tried, but in no table") for name in extra]
