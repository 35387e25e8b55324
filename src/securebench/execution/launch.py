"""From a request and a level to the words that start the guarded interpreter. Pure.

The guard's bootstrap gets all it has to know as one JSON argument, puts up the walls inside the process, and only
then runs the program. Its exit codes 120 and 121 say that it could not; they count only as long as it has not
reported, because afterwards they may be the program's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from securebench._json import dumps
from securebench.execution.interpreter import Interpreter
from securebench.execution.request import Policy, PythonRequest
from securebench.sandboxes.base import MIB, Guarantee

GUARD_TARGET = "/securebench-guard/guard"
"""Where a sandbox with a root file system of its own shows the guard's files."""

_ZONES = "/usr/share/zoneinfo"
_STRICT_TMP = 64 * 1024
_OTHER_TMP = 64 * MIB


@dataclass(frozen=True, slots=True)
class Places:
    """Paths as the program sees them. `report` is a descriptor's number or a file's path."""

    root: str
    guard: str
    report: int | str


def tmp_size(policy: Policy) -> int:
    """Bytes of each writable place besides the root: next to nothing where the policy forbids to use it."""
    return _STRICT_TMP if policy is Policy.STRICT else _OTHER_TMP


def environment(request: PythonRequest, root: str) -> dict[str, str]:
    """What the program finds in its environment: its root under the name of the seed, and where else one looks."""
    return {**request.env, "AIBB_TMP": root, "TMPDIR": root, "HOME": root}


def guarded_argv(
    request: PythonRequest,
    interpreter: Interpreter,
    places: Places,
    guarantees: frozenset[Guarantee],
    *,
    seal: bool,
) -> tuple[str, ...]:
    """The interpreter, isolated from its environment, on the guard's bootstrap."""
    params = {
        "program": f"{places.root}/{request.name}",
        "args": list(request.args),
        "root": places.root,
        "policy": request.policy.value,
        "allow": [*request.allow, *(["network"] if request.network else [])],
        "readable": readable(request.policy, interpreter, guarantees),
        "modules": list(request.modules),
        "report": places.report,
        "rlimits": rlimits(request, guarantees),
        "seal": seal,
        "require": required(request.policy, seal=seal),
        "trace": False,
    }
    return (interpreter.program, "-I", "-B", f"{places.guard}/bootstrap.py", dumps(params))


def readable(policy: Policy, interpreter: Interpreter, guarantees: frozenset[Guarantee]) -> list[str]:
    """Directories outside the root that the program may read. Other policies than strict leave that to the mounts:
    what is not to be seen is not there, and installed packages may be used."""
    if policy is not Policy.STRICT and Guarantee.FS in guarantees:
        return ["/"]
    return [*interpreter.readable, _ZONES]


def required(policy: Policy, *, seal: bool) -> list[str]:
    """The parts without which the guard may not start the program. Landlock is used where the kernel has it."""
    inside = [] if policy is Policy.OFF else ["hook"]
    if policy is Policy.STRICT:
        inside.append("imports")
    return [*inside, *(["no_new_privs", "rlimits", "seccomp"] if seal else [])]


def plain_argv(request: PythonRequest, interpreter: Interpreter, root: str) -> tuple[str, ...]:
    """The program as it would run anywhere: for an operator who switched protection off."""
    return (interpreter.program, "-B", f"{root}/{request.name}", *request.args)


def rlimits(request: PythonRequest, guarantees: frozenset[Guarantee]) -> Mapping[str, int | list[int]]:
    """What the kernel is asked to hold this one process to, whatever the backend does besides."""
    limits = request.limits
    wanted: dict[str, int | list[int]] = {"core": 0, "fsize": limits.file_size, "nofile": limits.open_files}
    if limits.cpu_seconds is not None:
        seconds = max(1, math.ceil(limits.cpu_seconds))
        wanted["cpu"] = [seconds, seconds + 1]  # first a signal of its own, by which the end is known, then the kill
    if Guarantee.MEM_HARD not in guarantees:
        # One process only, so its own limit is the run's. Where a control group counts, that one ends it in the open.
        wanted["data"] = limits.memory
    return wanted
