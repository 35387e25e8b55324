"""What a container used, from the kernel's control groups, read from outside.

A container's group is gone with the container, and with it what it counted. So each command's container gets a parent
group of ours, where the engine lets us choose one and the host lets us make one (root, and an engine that manages
groups itself): a parent counts all that its children ever used. Elsewhere the container's own group is looked at while
it runs, and what is told is what was last seen: at least so much was used.

The engine's start counts too: some tens of milliseconds of processor time, a few MiB, and a handful of threads. A
peak of processes that the start alone may have reached is not told.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio

from securebench._leftovers import is_stale

CPU, MEMORY, PIDS = "cpu", "memory", "pids"
_ROOT = Path("/sys/fs/cgroup")
_REMOVAL_SECONDS = 2.0
T = TypeVar("T", int, float)
STARTING_SECONDS = 0.2
"""No less than the processor time a container takes to start; 0.05 s was seen with runc, 0.18 s with runsc."""
_STARTING_THREADS = 16
"""More than the threads of the runtime that starts a container; 7 to 9 were seen."""

# Where engines put a container's group: without and with systemd, Docker and Podman.
_GROUPS = (
    "docker/{id}",
    "system.slice/docker-{id}.scope",
    "libpod_parent/libpod-{id}",
    "machine.slice/libpod-{id}.scope",
)
_HIERARCHIES: Mapping[str, tuple[str, ...]] = {
    CPU: ("", "cpuacct", "cpu,cpuacct"),
    MEMORY: ("", "memory"),
    PIDS: ("", "pids"),
}


@dataclass(frozen=True, slots=True)
class Counts:
    """What was used; None where this host does not count it. `peak_pids` includes the engine's own processes."""

    cpu_seconds: float | None = None
    peak_memory: int | None = None
    peak_pids: int | None = None

    def processes(self, own: int) -> int | None:
        """The most processes of the command at once, if that can be told from the engine's start."""
        if self.peak_pids is None or self.peak_pids <= _STARTING_THREADS:
            return None
        return self.peak_pids - own


def read_counts(groups: Mapping[str, Path]) -> Counts:
    """What the groups say; `groups` has one for each of cpu, memory and pids that is counted."""
    return Counts(
        cpu_seconds=_cpu_seconds(groups[CPU]) if CPU in groups else None,
        peak_memory=_peak_memory(groups[MEMORY]) if MEMORY in groups else None,
        peak_pids=_number(groups[PIDS] / "pids.peak") if PIDS in groups else None,
    )


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the engine puts the groups of its containers, and we may make our own."""

    parent: str
    counting: Mapping[str, Path]
    places: tuple[Path, ...]
    """`parent` in every hierarchy of this host."""


def find_ledger(identity: str, pid: int, mounts: str = "/proc/self/mounts", processes: str = "/proc") -> Ledger | None:
    """Where the running container `identity`, whose first process is `pid`, is counted; None if we can make no group
    there: another machine's engine, groups made by systemd, or no permission."""
    try:
        rows = [line.split(":", 2) for line in Path(processes, str(pid), "cgroup").read_text().splitlines()]
        hierarchies = _hierarchies(Path(mounts).read_text())
    except OSError:
        return None
    counting: dict[str, Path] = {}
    parents: set[str] = set()
    for _, controllers, path in rows:
        mount = hierarchies.get(frozenset(controllers.split(",")))
        # Named otherwise, somebody manages the groups who does not expect ours there.
        if mount is None or Path(path).name != identity:
            continue
        group = mount / path.lstrip("/")
        kinds = _counted(group) - set(counting)
        if kinds and _holds(group, pid) and os.access(group.parent, os.W_OK):
            counting |= dict.fromkeys(kinds, group.parent)
            parents.add(str(Path(path).parent))
    if CPU not in counting or MEMORY not in counting or len(parents) != 1:
        return None
    parent = parents.pop()
    return Ledger(parent, counting, tuple(mount / parent.lstrip("/") for mount in hierarchies.values()))


class Account:
    """What one container uses. Made before the container, removed after it."""

    def __init__(self, ledger: Ledger | None, name: str) -> None:
        self._name = name
        self._ledger = ledger
        self._groups: dict[str, Path] = {}
        self._identity: str | None = None
        self._seen = Counts()
        if ledger is not None:
            self._make(ledger)

    @property
    def parent(self) -> str | None:
        """The group the container has to be made in, or None for wherever the engine puts it."""
        return None if self._ledger is None else f"{self._ledger.parent.rstrip('/')}/{self._name}"

    @property
    def exact(self) -> bool:
        """Whether it can be read after the container's end."""
        return self._ledger is not None

    def follow(self, identity: str) -> None:
        """Look for the group of this container, which exists now, where there is none of ours."""
        self._identity = identity

    def read(self) -> Counts:
        """What was used so far; of a container that is gone, what was seen last."""
        if not self.exact and self._identity is not None:
            # The engine makes them one after the other, so each is looked for until it is there.
            self._groups |= _groups_of(self._identity, _HIERARCHIES.keys() - self._groups)
        now = read_counts(self._groups)
        self._seen = Counts(
            _most(now.cpu_seconds, self._seen.cpu_seconds),
            _most(now.peak_memory, self._seen.peak_memory),
            _most(now.peak_pids, self._seen.peak_pids),
        )
        return self._seen

    async def remove(self) -> None:
        """Remove our group from every hierarchy the engine made it in; one that is still in use stays for `clean`."""
        if self._ledger is None:
            return
        groups = [place / self._name for place in self._ledger.places]
        with anyio.CancelScope(shield=True), anyio.move_on_after(_REMOVAL_SECONDS):
            while groups := remove_groups(groups):
                await anyio.sleep(0.005)  # the kernel may need a moment after the last process has gone

    def _make(self, ledger: Ledger) -> None:
        try:
            for kind, place in ledger.counting.items():
                self._groups[kind] = place / self._name
                self._groups[kind].mkdir(exist_ok=True)
        except OSError:
            remove_groups(list(self._groups.values()))
            self._ledger, self._groups = None, {}


def remove_groups(groups: list[Path]) -> list[Path]:
    """Remove empty groups; those that could not be."""
    left = []
    for group in groups:
        try:
            group.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            left.append(group)
    return left


def clean_groups(mounts: str = "/proc/self/mounts") -> list[str]:
    """Remove the groups of engines that no longer live, where containers are put; their names."""
    found: set[str] = set()
    for mount in _hierarchies(Path(mounts).read_text()).values():
        # pathlib's own fails when a group of somebody else goes away meanwhile.
        found_here = (mount / name for name in glob.glob("*/securebench-*", root_dir=mount))  # noqa: PTH207
        stale = [group for group in found_here if is_stale(group.name)]
        for group in stale:
            remove_groups(_below(group))
        left = remove_groups(stale)
        found |= {group.name for group in stale if group not in left}
    return sorted(found)


def _below(group: Path) -> list[Path]:
    """Groups within a group, the innermost first: a daemon that was killed leaves those of its containers."""
    return [Path(place, name) for place, names, _ in os.walk(group, topdown=False) for name in names]


def _hierarchies(mounts: str) -> dict[frozenset[str], Path]:
    """Each hierarchy of this host: the controllers it is named by in a process's list -> where it is mounted."""
    known = {"cpu", "cpuacct", "memory", "pids", "cpuset", "devices", "freezer", "blkio", "net_cls", "net_prio"}
    known |= {"perf_event", "hugetlb", "rdma", "misc", "debug"}
    found: dict[frozenset[str], Path] = {}
    for row in (line.split() for line in mounts.splitlines()):
        if row[2] == "cgroup2":
            found.setdefault(frozenset({""}), Path(row[1]))
        elif row[2] == "cgroup":
            names = {option for option in row[3].split(",") if option in known or option.startswith("name=")}
            found.setdefault(frozenset(names), Path(row[1]))
    return found


def _holds(group: Path, pid: int) -> bool:
    with suppress(OSError):
        return str(pid) in (group / "cgroup.procs").read_text().split()
    return False


def _counted(group: Path) -> set[str]:
    seen = read_counts({CPU: group, MEMORY: group, PIDS: group})
    values = {CPU: seen.cpu_seconds, MEMORY: seen.peak_memory, PIDS: seen.peak_pids}
    return {kind for kind, value in values.items() if value is not None}


def _groups_of(identity: str, kinds: Set[str]) -> dict[str, Path]:
    """The container's own group for each of these kinds, where this host shows it to us."""
    names = [group.format(id=identity) for group in _GROUPS]
    found = {}
    for kind in kinds:
        candidates = (_ROOT / hierarchy / name for hierarchy in _HIERARCHIES[kind] for name in names)
        group = next((group for group in candidates if group.exists() and kind in _counted(group)), None)
        if group is not None:
            found[kind] = group
    return found


def _most(one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _cpu_seconds(group: Path) -> float | None:
    nanoseconds = _number(group / "cpuacct.usage")
    if nanoseconds is not None:
        return nanoseconds / 1e9
    rows = (line.split() for line in _text(group / "cpu.stat").splitlines())
    return next((int(row[1]) / 1e6 for row in rows if row[:1] == ["usage_usec"]), None)


def _peak_memory(group: Path) -> int | None:
    peak = _number(group / "memory.peak")
    return peak if peak is not None else _number(group / "memory.max_usage_in_bytes")


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text()
    return ""
