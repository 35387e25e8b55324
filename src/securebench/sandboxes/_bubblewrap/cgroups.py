"""Control groups: the only limits that hold for a whole sandbox, where this host lets us make them.

Found by trying, not by version: version 2 in our own group's ancestors (a systemd delegation, or root), version 1 per
controller beneath our own group. A host that allows neither gives `None`, and the caller falls back to resource
limits and advertises no hard memory limit.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from securebench._leftovers import is_stale, owned_name
from securebench.errors import SandboxError
from securebench.sandboxes.base import Limits

_PERIOD_US = 100_000
_REMOVAL_SECONDS = 10.0
_COUNTER_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Controllers:
    """Where groups can be made: a directory per controller (the same one for all in version 2)."""

    version: int
    parents: Mapping[str, Path]

    @property
    def memory(self) -> bool:
        return "memory" in self.parents

    @property
    def mode(self) -> str:
        return f"v{self.version}:{','.join(sorted(self.parents))}"


@dataclass(frozen=True, slots=True)
class Counters:
    """What a group has used; None where this host does not count it."""

    cpu_seconds: float | None = None
    peak_memory: int | None = None
    peak_pids: int | None = None
    oom_kills: int = 0
    at_limit: int = 0  # times that somebody asked for more memory than was left


class Group:
    """One sandbox's group: one directory in version 2, one per controller in version 1."""

    def __init__(self, controllers: Controllers, name: str, unused: frozenset[str] = frozenset()) -> None:
        self._version = controllers.version
        self._paths = {
            controller: parent / name for controller, parent in controllers.parents.items() if controller not in unused
        }
        self._entrances: list[int] = []
        self._files: dict[tuple[str, str], int] = {}  # what is read often is opened once
        self._last: Counters | None = None  # once it was removed

    def create(self, limits: Limits, extra_pids: int) -> None:
        """Make it and set its limits. Raises SandboxError."""
        try:
            for path in self._directories():
                path.mkdir()
            for controller, file, value in self._settings(limits, extra_pids):
                if controller in self._paths:
                    _set(self._paths[controller] / file, value)
        except OSError as error:
            self.remove()
            raise SandboxError(f"cannot make control group: {error}") from error

    @property
    def entrances(self) -> tuple[int, ...]:
        """Descriptors through which a process, writing `0`, moves itself in; its children follow. Ours to close.

        In version 1 of a single thread, which spares the host a pause; version 2 moves whole processes only."""
        if not self._entrances:
            file = "tasks" if self._version == 1 else "cgroup.procs"
            try:
                for path in self._directories():
                    self._entrances.append(os.open(path / file, os.O_WRONLY | os.O_CLOEXEC))
            except OSError as error:
                raise SandboxError(f"cannot enter control group: {error}") from error
        return tuple(self._entrances)

    def counters(self) -> Counters:
        """What was used so far, also after it was removed."""
        if self._last is not None:
            return self._last
        if self._version == 2:
            return self._counters_v2()
        peak = self._number("memory", "memory.max_usage_in_bytes")
        usage = self._number("cpuacct", "cpuacct.usage")
        return Counters(
            cpu_seconds=None if usage is None else usage / 1e9,
            peak_memory=peak,
            peak_pids=self._number("pids", "pids.peak"),
            oom_kills=self._field("memory", "memory.oom_control", "oom_kill") or 0,
            at_limit=self._number("memory", "memory.failcnt") or 0,
        )

    def cpu_seconds(self) -> float | None:
        """Processor time used so far by everything that ever ran in it."""
        return self.counters().cpu_seconds

    def holds_more_than(self, size: int) -> bool:
        """Whether so many bytes are in use now, without what is only kept of files and goes when memory is needed."""
        total, kept = ("memory.current", "file") if self._version == 2 else ("memory.usage_in_bytes", "cache")
        used = self._number("memory", total) or 0
        if used <= size:
            return False  # the usual case, for which one number is enough
        stat = self._fields("memory", "memory.stat")
        files = stat.get(kept, 0) - stat.get("shmem", 0) + stat.get("slab_reclaimable", 0)
        return used - files > size

    def begin_anew(self) -> bool:
        """Have the peak of memory count from here; whether this kernel can do that."""
        file = "memory.peak" if self._version == 2 else "memory.max_usage_in_bytes"
        with suppress(OSError):
            os.write(self._open("memory", file), b"0")  # version 2 (Linux 6.12): for who reads through this descriptor
            return True
        return False

    def remove(self) -> None:
        """Remove it; processes that are still dying are waited for. Raises SandboxError when some do not die."""
        while self._entrances:
            os.close(self._entrances.pop())
        self._last = self.counters()
        while self._files:
            os.close(self._files.popitem()[1])
        deadline = time.monotonic() + _REMOVAL_SECONDS
        for path in self._directories():
            _remove(path, deadline)

    def _directories(self) -> list[Path]:
        return list(dict.fromkeys(self._paths.values()))

    def _settings(self, limits: Limits, extra_pids: int) -> list[tuple[str, str, str]]:
        memory, pids = str(limits.memory), str(limits.pids + extra_pids)
        if self._version == 2:
            quota = f"{int(limits.cpus * _PERIOD_US)} {_PERIOD_US}" if limits.cpus else "max"
            rows = [("memory", "memory.max", memory), ("memory", "memory.swap.max", "0"), ("pids", "pids.max", pids)]
            return [*rows, ("cpu", "cpu.max", quota)] if limits.cpus else rows
        rows = [
            ("memory", "memory.limit_in_bytes", memory),
            ("memory", "memory.memsw.limit_in_bytes", memory),
            ("pids", "pids.max", pids),
        ]
        if limits.cpus:
            rows.append(("cpu", "cpu.cfs_quota_us", str(int(limits.cpus * _PERIOD_US))))
        return rows

    def _counters_v2(self) -> Counters:
        usage = self._field("memory", "cpu.stat", "usage_usec")
        events = self._fields("memory", "memory.events")
        return Counters(
            cpu_seconds=None if usage is None else usage / 1e6,
            peak_memory=self._number("memory", "memory.peak"),
            peak_pids=self._number("pids", "pids.peak"),
            oom_kills=events.get("oom_kill", 0),
            at_limit=events.get("max", 0),
        )

    def _number(self, controller: str, file: str) -> int | None:
        text = self._read(controller, file)
        return int(text) if text.strip().isdigit() else None

    def _field(self, controller: str, file: str, name: str) -> int | None:
        return self._fields(controller, file).get(name)

    def _fields(self, controller: str, file: str) -> dict[str, int]:
        rows = (line.split() for line in self._read(controller, file).splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) == 2}

    def _read(self, controller: str, file: str) -> str:
        if controller not in self._paths:
            return ""
        with suppress(OSError):
            return os.pread(self._open(controller, file), _COUNTER_BYTES, 0).decode("ascii", "replace")
        return ""

    def _open(self, controller: str, file: str) -> int:
        fd = self._files.get((controller, file))
        if fd is None:
            path = self._paths[controller] / file
            how = os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY
            fd = self._files[controller, file] = os.open(path, how | os.O_CLOEXEC)
        return fd


@contextmanager
def group(limits: Limits, *, extra_pids: int) -> Iterator[Group | None]:
    """A group with these limits for one sandbox, removed at the end; None where we may not make any.

    `extra_pids` are processes of ours that live in it too. Raises SandboxError.
    """
    controllers = find_controllers()
    if controllers is None:
        yield None
        return
    # Moving a process into a version 1 group costs a millisecond per controller, so only those that limit something.
    unused = frozenset({"cpu"}) if controllers.version == 1 and limits.cpus is None else frozenset()
    # A name by chance: sandboxes see it, and a number would tell them how many there were before.
    made = Group(controllers, owned_name(secrets.token_hex(6)), unused)
    made.create(limits, extra_pids)
    try:
        yield made
    finally:
        made.remove()


@cache
def find_controllers() -> Controllers | None:
    """Where groups can be made on this host, found by making one and moving nothing into it."""
    for found in (_find_v2(), _find_v1()):
        if found is not None and "pids" in found.parents and found.memory:
            return found
    return None


def _find_v2() -> Controllers | None:
    mount = next((where for kind, where, _ in _mounts() if kind == "cgroup2"), None)
    own = next((line[3:] for line in _own_groups() if line.startswith("0::")), None)
    if mount is None or own is None:
        return None
    here = mount / own.lstrip("/")
    for parent in (here, *here.parents):
        if not parent.is_relative_to(mount):
            break
        enabled = _enabled(parent)
        if {"memory", "pids"} <= enabled and _can_make(parent, "memory.max"):
            usable = enabled & {"memory", "pids", "cpu"}
            return Controllers(2, dict.fromkeys(usable, parent))
    return None


def _enabled(parent: Path) -> set[str]:
    """The controllers that children of `parent` have; turns on ours where the kernel lets us."""
    control = parent / "cgroup.subtree_control"
    with suppress(OSError):
        if not {"memory", "pids"} <= set(control.read_text().split()) and os.access(control, os.W_OK):
            control.write_text("+memory +pids")
        return set(control.read_text().split())
    return set()


def _find_v1() -> Controllers | None:
    own = {name: line.split(":", 2)[2] for line in _own_groups() for name in line.split(":", 2)[1].split(",")}
    parents = {}
    for kind, mount, options in _mounts():
        if kind != "cgroup":
            continue
        for controller in {"memory", "pids", "cpu", "cpuacct"} & set(options.split(",")):
            candidates = (mount / own.get(controller, "/").lstrip("/"), mount)
            made = next((parent for parent in candidates if _can_make(parent, "cgroup.procs")), None)
            if made is not None:
                parents[controller] = made
    return Controllers(1, parents) if parents else None


def _can_make(parent: Path, file: str) -> bool:
    if not os.access(parent, os.W_OK) or not os.access(parent / "cgroup.procs", os.W_OK):
        return False
    path = parent / owned_name(f"probe{secrets.token_hex(6)}")
    try:
        path.mkdir()
    except OSError:
        return False
    try:
        return (path / file).exists()
    finally:
        path.rmdir()


def _mounts() -> list[tuple[str, Path, str]]:
    rows = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [(row[2], Path(row[1]), row[3]) for row in rows if row[2].startswith("cgroup")]


def _own_groups() -> list[str]:
    return Path("/proc/self/cgroup").read_text().splitlines()


def _set(path: Path, value: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)
    except FileNotFoundError:
        if "swap" not in path.name and "memsw" not in path.name:
            raise  # swap files exist only where swap is accounted


def _remove(path: Path, deadline: float) -> None:
    while True:
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise SandboxError(f"control group {path} cannot be removed: {error}") from error
            time.sleep(0.002)
        else:
            return


def clean_leftovers() -> list[str]:
    """End and remove the groups of engines that no longer live; the paths removed."""
    controllers = find_controllers()
    parents = set(controllers.parents.values()) if controllers is not None else set()
    stale = [path for parent in parents for path in parent.glob("securebench-*") if is_stale(path.name)]
    for path in stale:
        _kill_all(path)
        _remove(path, time.monotonic() + _REMOVAL_SECONDS)
    return [str(path) for path in stale]


def _kill_all(path: Path) -> None:
    members = ""
    with suppress(OSError):  # another engine that starts now was faster, and the group is gone
        members = (path / "cgroup.procs").read_text()
    for line in members.split():
        with suppress(ProcessLookupError):
            os.kill(int(line), 9)
