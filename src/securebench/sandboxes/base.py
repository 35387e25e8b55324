"""The sandbox protocol: what a caller may ask for and what it gets back.

A caller describes a `SandboxSpec`, opens a `Session` on it, runs `Command`s, stops everything, and then reads
what was left in a scratch directory through a descriptor. Rules every backend keeps, and the conformance
suite checks:

- Nothing of the host is writable from inside. The only writable places are `Scratch` and `/tmp`, both with a size.
- A required guarantee that cannot be given is `SandboxUnavailable`, never a weaker sandbox.
- A backend's own failure is a `SandboxError`; it never looks like the command's output or exit code.
- What a result reports was observed from outside; nothing in it was said by the sandboxed processes
  except `stdout`, `stderr` and `exit_code`.
- After `Session.stop` no process of the session exists; after the session closes nothing of it remains.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from securebench._one_file import Modules, one_text
from securebench.errors import ConfigError

MIB = 1024 * 1024
LISTENER_PORTS = range(1024, 65536)
MOST_LISTENERS = 16


class Guarantee(StrEnum):
    """What a spec may require. Advertised by a backend only where its probe saw it hold on this host."""

    FS = "fs"  # sees only what the spec mounts, writes only to scratch
    PID = "pid"  # sees, signals and outlives nothing outside; all its descendants die with it
    NET = "net"  # reaches no address, name, or socket of any family outside
    MEM_HARD = "mem_hard"  # the memory limit holds for the sum of all its processes, shared memory included
    KERNEL = "kernel"  # does not share the host's kernel


ISOLATED = frozenset({Guarantee.FS, Guarantee.PID, Guarantee.NET})


@dataclass(frozen=True, slots=True)
class HostRoot:
    """The host's programs and libraries read-only; nothing personal, no host processes, no host sockets."""


HOST_ROOT_PATHS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""What `HostRoot` shows of the host, besides a few files of `/etc`. Nothing secret may lie there."""


@dataclass(frozen=True, slots=True)
class DirectoryRoot:
    """An unpacked root file system, mounted read-only."""

    path: Path


@dataclass(frozen=True, slots=True)
class ImageRoot:
    """A container image by the name the pack gives it."""

    reference: str


Root = HostRoot | DirectoryRoot | ImageRoot


def root_of(image: str | None) -> Root:
    """The root file system of a task's sandboxes: its image's, or the host's programs."""
    return ImageRoot(image) if image else HostRoot()


@dataclass(frozen=True, slots=True)
class Bind:
    """A host file or directory made visible read-only."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Scratch:
    """A writable directory of at most `size` bytes, filled from `seed` before the first command runs."""

    target: str
    size: int = 256 * MIB
    seed: Path | None = None


Mount = Bind | Scratch


class Network(StrEnum):
    """`NONE`: not even a route. `LOOPBACK`: its own, private loopback interface and nothing else.

    `UNSAFE_HOST`: the host's network with all it reaches. Only for `exec --allow-network`; no `Guarantee.NET` then."""

    NONE = "none"
    LOOPBACK = "loopback"
    UNSAFE_HOST = "unsafe_host"


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard bounds of one sandbox. Sizes in bytes, times in seconds; `None` means no bound of that kind."""

    wall_seconds: float = 60.0
    cpu_seconds: float | None = None
    cpus: float | None = None
    memory: int = 1024 * MIB
    pids: int = 256
    file_size: int = 1024 * MIB
    open_files: int = 1024
    output: int = 1 * MIB  # per stream, kept; the command is ended at `output` bytes beyond it
    tmp: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """Everything that decides what a sandbox is. Frozen, so it can be digested into a record.

    `listeners` are TCP ports of the sandbox's own 127.0.0.1 that the host answers (`Session.listener`): all that can be
    reached from inside. They need `Network.LOOPBACK`."""

    root: Root = field(default_factory=HostRoot)
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cwd: str = "/"
    network: Network = Network.NONE
    limits: Limits = field(default_factory=Limits)
    require: frozenset[Guarantee] = ISOLATED
    capabilities: frozenset[str] = frozenset()
    user: int = 65534  # the user id seen inside
    listeners: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        targets = [_absolute(mount.target) for mount in self.mounts]
        for index, target in enumerate(targets):
            for other in targets[:index]:
                if target == other or other in target.parents or target in other.parents:
                    # A mount point beneath a writable mount can be redirected by a planted link.
                    raise ConfigError(f"sandbox mounts {other} and {target} overlap; give each its own directory")
        _absolute(self.cwd)
        if self.network is Network.UNSAFE_HOST and Guarantee.NET in self.require:
            raise ConfigError("a sandbox with the host's network cannot require the guarantee net; require fs and pid")
        _check_listeners(self.listeners, self.network)

    @property
    def scratches(self) -> tuple[Scratch, ...]:
        return tuple(mount for mount in self.mounts if isinstance(mount, Scratch))


def in_force(guarantees: frozenset[Guarantee], network: Network) -> frozenset[Guarantee]:
    """What is left of a backend's guarantees for a sandbox with this network."""
    return guarantees - {Guarantee.NET} if network is Network.UNSAFE_HOST else guarantees


def refuse_host_network(spec: SandboxSpec, backend: str) -> None:
    """For backends that do not give the host's network away. Raises ConfigError."""
    if spec.network is Network.UNSAFE_HOST:
        raise ConfigError(f"the {backend} sandbox never gives the host's network; only bubblewrap does, when asked")


def refuse_listeners(spec: SandboxSpec, backend: str) -> None:
    """For backends without a network of the sandbox's own. Raises ConfigError."""
    if spec.listeners:
        raise ConfigError(f"the {backend} sandbox has no network of its own to listen in; use bubblewrap or docker")


def _check_listeners(ports: tuple[int, ...], network: Network) -> None:
    if ports and network is not Network.LOOPBACK:
        raise ConfigError(f"sandbox listeners need the network {Network.LOOPBACK}, not {network}")
    if wrong := [port for port in ports if port not in LISTENER_PORTS]:
        raise ConfigError(f"sandbox listener port {wrong[0]} is not from {LISTENER_PORTS[0]} to {LISTENER_PORTS[-1]}")
    if len(set(ports)) != len(ports) or len(ports) > MOST_LISTENERS:
        raise ConfigError(f"sandbox listeners must be distinct ports, at most {MOST_LISTENERS} of them")


def _absolute(path: str) -> PurePosixPath:
    parsed = PurePosixPath(path)
    if not parsed.is_absolute() or ".." in parsed.parts or "\0" in path:
        raise ConfigError(f"sandbox path {path!r} must be absolute and without '..'")
    return parsed


OnOutput = Callable[[str, bytes], None]
"""Called with "stdout" or "stderr" and the bytes as they arrive, within the output limit."""


PYTHON = ("python3", "-I", "-S", "-B", "-c")
"""An interpreter that reads no start-up file, no variable and no site directory."""


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """A Python program in two parts: `modules` only define things, `start` begins.

    The first part may have been loaded long before, and once for many runs, by a process that runs nothing else. Who
    does that also loads `rehearsal` and calls the last one's `main`: it leaves nothing behind but an interpreter that
    has done before what the program does."""

    modules: Modules
    start: str
    arguments: tuple[str, ...] = ()
    rehearsal: Modules = ()

    @property
    def text(self) -> str:
        return one_text(self.modules) + self.start

    @property
    def argv(self) -> tuple[str, ...]:
        return (*PYTHON, self.text, *self.arguments)


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run. `env` is added to the spec's; `channels` are sockets inherited under fixed numbers.
    `python` says what a program of ours consists of whose words are `argv`.

    A channel 0 or 1 is the command's standard input or output itself; the same socket may be both. `Session.run`
    takes these sockets over: it closes its copies as soon as the command has them, so that the other end sees the end
    of the stream when the command is gone. With a channel 1 nothing of `stdout` is captured; a channel 0 leaves no
    place for `stdin`. Sockets under other numbers stay the caller's to close.

    `waits` says that the program is ours and does nothing before the first byte on its channel 0, so that it may be
    started before there is anybody to talk with; it has the channels 0 and 1."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cwd: str | None = None
    wall_seconds: float | None = None
    channels: Mapping[int, socket.socket] = field(default_factory=lambda: MappingProxyType({}))
    on_output: OnOutput | None = None
    python: PythonProgram | None = None
    waits: bool = False

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of its channels, also where it has no sockets yet."""
        return frozenset(self.channels) | ({0, 1} if self.waits else set())

    def continues(self, begun: Command) -> bool:
        """Whether this is what was begun before, now with somebody to talk with."""
        same = (self.argv, dict(self.env), self.cwd) == (begun.argv, dict(begun.env), begun.cwd)
        return same and self.waits and begun.waits and self.channels.keys() == {0, 1} and not self.stdin


class Outcome(StrEnum):
    """How a command ended, decided from outside in this order: our own kill first, its exit code last."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"
    CPU_LIMIT = "cpu_limit"
    OUT_OF_MEMORY = "oom"
    OUTPUT_LIMIT = "output_limit"


@dataclass(frozen=True, slots=True)
class Output:
    """One captured stream: the first bytes kept, and how many there were in all."""

    data: bytes
    total: int

    @property
    def truncated(self) -> bool:
        return self.total > len(self.data)


@dataclass(frozen=True, slots=True)
class Usage:
    """Measured resources; `None` where this host cannot tell exactly."""

    wall_seconds: float
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    peak_pids: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What was observed of one command. `exit_code` is None unless it exited by itself."""

    outcome: Outcome
    exit_code: int | None
    signal: int | None
    stdout: Output
    stderr: Output
    usage: Usage
    guarantees: frozenset[Guarantee]
    fingerprint: Mapping[str, str]
    started: bool = True  # False where the backend saw that the program could not even be executed

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.EXITED and self.exit_code == 0

    @property
    def timed_out(self) -> bool:
        return self.outcome is Outcome.TIMEOUT

    @property
    def oom(self) -> bool:
        return self.outcome is Outcome.OUT_OF_MEMORY


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a probe looked at, what it saw, and how to improve it."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do on this host, as seen by running it, not by reading version numbers."""

    usable: bool
    guarantees: frozenset[Guarantee]
    findings: tuple[Finding, ...]
    fingerprint: Mapping[str, str]

    @property
    def remedy(self) -> str:
        return "\n".join(f"- {finding.remedy}" for finding in self.findings if not finding.ok and finding.remedy)


class Session(Protocol):
    """A live sandbox. Commands run one at a time and share its scratch directories."""

    async def run(self, command: Command) -> SandboxResult:
        """Run one command to its end. Raises SandboxError when the backend itself failed."""
        ...

    async def stop(self) -> None:
        """End every process of the session. Idempotent; no command can run afterwards."""
        ...

    def scratch(self, target: str) -> int:
        """A directory descriptor on a scratch of a stopped session, owned by the session."""
        ...

    def listener(self, port: int) -> socket.socket:
        """The listening, non-blocking socket of a port the spec names, for the host to accept on.

        Ready before the first command, so that nothing inside can take the port. Owned by the session and closed when
        it stops or closes; who then waits on it in `anyio.wait_readable` gets `ClosedResourceError`. Raises
        SandboxError."""
        ...


class Sandbox(Protocol):
    """A backend. A new one is a new file that passes `tests/conformance/sandbox`."""

    @property
    def name(self) -> str: ...

    async def offers(self, root: Root) -> bool:
        """Whether it can make this root file system here: an image must be present."""
        ...

    async def probe(self) -> Capabilities:
        """What this backend can guarantee on this host, measured by running it. Cached per process."""
        ...

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A fresh sandbox, destroyed when the context ends, however it ends."""
        ...

    async def clean(self) -> list[str]:
        """Remove what engines that no longer live left behind; what was removed."""
        ...


@runtime_checkable
class Keepable(Protocol):
    """What a session may have besides the members of `Session`: it can be opened long before it is used."""

    async def intact(self) -> bool:
        """Whether it is as it was when it was opened: nothing in it has ended, was stopped or started again. Asked
        only before anything was run in it."""
        ...

    async def end(self) -> None:
        """End every process of the session, without looking at what they left. Idempotent."""
        ...


@runtime_checkable
class Preparable(Keepable, Protocol):
    """A session in which more can be done before it is used than to open it."""

    async def begin(self, command: Command) -> None:
        """Start a command that `waits`; a later `run` of the same goes on with it. Raises SandboxError, ConfigError."""
        ...

    async def fill(self, seeds: Mapping[str, Path]) -> None:
        """Fill scratch directories that were opened without a seed: target -> seed. Raises as opening with it does."""
        ...


@runtime_checkable
class Routing(Protocol):
    """What a sandbox may have besides the members of `Sandbox`: it stands for another one."""

    def backend(self, root: Root) -> Sandbox:
        """The one that makes sandboxes with this root. Raises SandboxUnavailable when none does."""
        ...


@runtime_checkable
class ImageSource(Protocol):
    """What a backend may have besides the members of `Sandbox`: it knows which image a name means here."""

    async def image_digest(self, reference: str) -> str:
        """The digest under which that image is recorded. Raises SandboxUnavailable when there is no such image."""
        ...


@runtime_checkable
class WorkdirSource(Protocol):
    """What a backend may have besides the members of `Sandbox`: a look into an image without running it."""

    def workdir_tar(self, reference: str, workdir: str) -> AbstractAsyncContextManager[int]:
        """A descriptor on a tar file, of bounded size, with what is in `workdir` of the image.

        What is in it is as trustworthy as the image. Raises on entry ConfigError when the image has no such
        directory or too much in it, SandboxUnavailable with the remedy when there is no such image, SandboxError."""
        ...


def resolve_sandbox_host_path(root: Path, path: str) -> Path:
    """Where a path inside a sandbox root lies on the host. Raises ConfigError when it would lead outside.

    Refused: `..`, an absolute path that is not beneath the root once taken as relative to it, and any link on the
    way. For trusted trees only: between this answer and its use, an untrusted process could change the tree; what
    an agent wrote is read through descriptors instead (`_fs`)."""
    parts = PurePosixPath(path.lstrip("/")).parts
    if "\0" in path or ".." in parts:
        raise ConfigError(f"sandbox path {path!r} leads outside its root")
    place = root
    for part in parts:
        place = place / part
        if place.is_symlink():
            raise ConfigError(f"sandbox path {path!r} passes through a link at {part!r}")
    return place


async def run_once(sandbox: Sandbox, spec: SandboxSpec, command: Command) -> SandboxResult:
    """One command in a sandbox of its own."""
    async with sandbox.open(spec) as session:
        return await session.run(command)
