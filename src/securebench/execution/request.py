"""What a caller may ask of a stranger's Python program, and what it gets back."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from securebench._paths import canonical_key, relative_path
from securebench.errors import ConfigError
from securebench.guard.rules import ITEMS
from securebench.sandboxes.base import MIB, Guarantee, Limits, OnOutput, Outcome, Output

REPORT_FD = 9
"""The descriptor on which the guard reports, where a backend can hand one down. Not for a caller's channels."""

ALLOWABLE = tuple(name for name, item in ITEMS.items() if item.enforced_by == ("guard",))
"""The items that a request may allow: those only the guard forbids. For all others the kernel has the last word."""
_MODULE = "imports:"

Assurance = Literal["isolated", "guarded", "unsafe"]


class Policy(StrEnum):
    """What the guard layer forbids inside the interpreter. The kernel's walls are the same for all of them."""

    STRICT = "strict"  # no dynamic code, no banned modules, no processes, sockets or files outside the root
    STANDARD = "standard"  # dynamic code allowed; the guard only explains what the kernel forbids anyway
    OFF = "off"  # no guard


@dataclass(frozen=True, slots=True)
class PythonLimits:
    """Hard bounds of one program. Sizes in bytes, times in seconds; `None` means no bound of that kind."""

    timeout: float = 60.0
    memory: int = 512 * MIB
    cpu_seconds: float | None = None
    cpu_share: float | None = None  # of one core; needs control groups
    pids: int = 64  # threads count
    output: int = 8 * MIB  # per stream, kept; ended at as much beyond it
    disk: int = 256 * MIB
    file_size: int = 256 * MIB
    open_files: int = 256

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ConfigError(f"the limit {name} must be above zero and finite, not {value}")

    def for_sandbox(self, tmp: int) -> Limits:
        """The same as a backend takes them; `tmp` bytes for each writable place that is not the root."""
        return Limits(
            wall_seconds=self.timeout,
            cpu_seconds=self.cpu_seconds,
            cpus=self.cpu_share,
            memory=self.memory,
            pids=self.pids,
            file_size=self.file_size,
            open_files=self.open_files,
            output=self.output,
            tmp=tmp,
        )


def _nothing() -> Mapping[str, bytes]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PythonRequest:
    """One program to run. Its file, `files` and nothing else are in its root when it starts.

    `name` is what the program's file is called there. `files` are further inputs by relative path. `outputs` are the
    relative paths of regular files to take out afterwards. `allow` names single items the policy would forbid.
    `channels` are sockets inherited under fixed numbers, as `sandboxes.base.Command` takes them.
    """

    program: bytes
    name: str = "program.py"
    files: Mapping[str, bytes] = field(default_factory=_nothing)
    args: tuple[str, ...] = ()
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    policy: Policy = Policy.STRICT
    allow: tuple[str, ...] = ()
    limits: PythonLimits = field(default_factory=PythonLimits)
    network: bool = False
    outputs: tuple[str, ...] = ()
    channels: Mapping[int, socket.socket] = field(default_factory=lambda: MappingProxyType({}))
    on_output: OnOutput | None = None

    def __post_init__(self) -> None:
        keys: dict[tuple[str, ...], str] = {}
        for path in (self.name, *self.files):
            key = canonical_key(_parsed(path))
            if key in keys:
                raise ConfigError(f"two inputs would both be called {path}")
            keys[key] = path
        for key, path in keys.items():
            if any(key[:length] in keys for length in range(1, len(key))):
                raise ConfigError(f"input {path} lies beneath another input, which is a file")
        for path in self.outputs:
            _parsed(path)
        for item in self.allow:
            if not (item in ALLOWABLE or (item.startswith(_MODULE) and item.removeprefix(_MODULE).isidentifier())):
                raise ConfigError(f"the item {item!a} cannot be allowed; {', '.join(ALLOWABLE)} and imports:MODULE can")
        if REPORT_FD in self.channels:
            raise ConfigError(f"channel {REPORT_FD} is taken by the guard's report; use another number")

    @classmethod
    def from_path(cls, path: Path, **more: object) -> PythonRequest:
        """The program in a file of the operator's. Raises ConfigError for one that cannot be read."""
        from securebench.execution.inputs import read_program

        name, data = read_program(path)
        return cls(data, name, **more)  # type: ignore[arg-type]

    @property
    def modules(self) -> tuple[str, ...]:
        """The top-level names that `import` may find among the submitted files."""
        paths = [relative_path(path) for path in (self.name, *self.files)]
        names = {path.parts[0].removesuffix(".py") for path in paths if path.suffix == ".py"}
        return tuple(sorted(name for name in names if name.isidentifier()))


def _parsed(path: str) -> str:
    try:
        return str(relative_path(path))
    except ValueError as error:
        raise ConfigError(f"{path!a} cannot be a file of the program: {error}") from None


@dataclass(frozen=True, slots=True)
class Blocked:
    """One operation the guard refused: the item of `guard.rules` it falls under, what it was, the guard's words for it
    with the flag that would allow it, and the source line."""

    item: str
    operation: str
    message: str = ""
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class PythonResult:
    """How a program ended and what it used, observed from outside.

    The program's own word are `stdout`, `stderr`, `exit_code` and `outputs`, and `blocked`, which the guard says from
    inside its process; no verdict may rest on them. `bytes_written` is what it left in its root beyond the inputs,
    and its output. `refused` says why a declared output was not taken. `None` is what this host cannot tell.
    """

    outcome: Outcome
    exit_code: int | None
    signal: int | None
    stdout: Output
    stderr: Output
    blocked: tuple[Blocked, ...]
    wall_seconds: float
    cpu_seconds: float | None
    peak_memory: int | None
    bytes_written: int | None
    outputs: Mapping[str, bytes]
    refused: Mapping[str, str]
    isolation: str
    assurance: Assurance
    guarantees: frozenset[Guarantee]
    installed: tuple[str, ...]
    fingerprint: Mapping[str, str]

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.EXITED and self.exit_code == 0

    @property
    def timed_out(self) -> bool:
        return self.outcome is Outcome.TIMEOUT

    @property
    def oom(self) -> bool:
        return self.outcome is Outcome.OUT_OF_MEMORY
