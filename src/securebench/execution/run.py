"""`run_python`: the one way a stranger's Python is started, for `exec`, for verifiers and for the audit alike.

The program and its inputs are copied into a fresh root, the guard's files lie read-only outside it, the backend
supervises, and only when every process is dead are declared outputs read. The root goes with the sandbox.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from securebench._fs import open_directory, settle_times, write_new
from securebench._leftovers import staging_directory
from securebench._proc import Capture
from securebench._tasks import side_tasks
from securebench.errors import CandidateError, SandboxError
from securebench.execution.guard_files import guard_for
from securebench.execution.harvest import MAX_REPORT, Harvest, Report, bytes_left, read_report, take_outputs
from securebench.execution.isolation import AUTO, Isolation, check_needs, select_isolation
from securebench.execution.launch import GUARD_TARGET, Places, environment, guarded_argv, plain_argv, tmp_size
from securebench.execution.request import REPORT_FD, PythonRequest, PythonResult
from securebench.sandboxes.base import (
    MIB,
    Bind,
    Command,
    Guarantee,
    Mount,
    Network,
    Outcome,
    SandboxResult,
    SandboxSpec,
    Scratch,
    Session,
)

_REPORT_SIZE = 2 * MIB
_REPORT_NAME = "report.jsonl"


async def run_python(request: PythonRequest, level: str | Isolation = AUTO, *, seal: bool = True) -> PythonResult:
    """Run the program to its end. Whatever it does is in the result.

    `seal=False` leaves out the kernel's walls inside the process; it is for the audit, which must see them missing.

    Raises SandboxUnavailable where the level or something the request needs cannot be had here, SandboxError when
    the backend or the guard did not start, ConfigError for a request that contradicts itself."""
    isolation = level if isinstance(level, Isolation) else await select_isolation(level)
    check_needs(
        isolation,
        cpu_share=request.limits.cpu_share is not None,
        network=request.network,
        channels=any(number > 1 for number in request.channels),
    )
    with staging_directory() as staging:
        inputs = staging.resolve() / isolation.new_name("aibb")
        _write_inputs(request, inputs)
        guard = (await guard_for(isolation.interpreter)) / "guard"
        return await _Run(request, isolation, inputs, guard, seal).result()


def _write_inputs(request: PythonRequest, target: Path) -> None:
    target.mkdir()
    target.chmod(0o755)
    with open_directory(target) as root:
        for path, data in {request.name: request.program, **request.files}.items():
            write_new(root, PurePosixPath(path), data, 0o644)
    settle_times(target)


@dataclass(slots=True)
class _Run:
    """One run. Where a backend has no file system of its own, the inputs' directory is the root itself."""

    request: PythonRequest
    isolation: Isolation
    inputs: Path
    guard: Path
    seal: bool
    reported: Capture = field(default_factory=lambda: Capture(keep=MAX_REPORT, flood=1 << 62))

    async def result(self) -> PythonResult:
        """Raises SandboxError when the guard did not start, and as the backend does."""
        request, isolation = self.request, self.isolation
        places = self._places()
        async with isolation.sandbox.open(self._spec(places)) as session:
            seen = await self._run(session, places)
            await session.stop()
            if not isolation.on_host:
                harvest, written = _leavings(session, places.root, request)
                if isinstance(places.report, str):
                    self.reported.data += _report_in(session, places.report)
        if isolation.on_host:
            with open_directory(self.inputs) as root, open_directory(self.inputs.parent) as around:
                harvest, written = _taken(root, request, own_file_system=False)
                self.reported.data += _report_beneath(around)
        said = Report((), ())
        if isolation.guarded:
            said = read_report(bytes(self.reported.data), places.root)
            _check_started(seen, said)
        return _result(request, isolation, seen, said, harvest, written)

    def _places(self) -> Places:
        isolation = self.isolation
        if isolation.on_host:
            report = REPORT_FD if isolation.channels else str(self.inputs.parent / _REPORT_NAME)
            return Places(str(self.inputs), str(self.guard), report)
        report = REPORT_FD if isolation.channels else f"/{isolation.new_name('report')}/{_REPORT_NAME}"
        return Places(f"/{isolation.new_name('aibb')}", GUARD_TARGET, report)

    def _spec(self, places: Places) -> SandboxSpec:
        request, isolation = self.request, self.isolation
        mounts: list[Mount] = []
        if not isolation.on_host:
            mounts.append(Scratch(places.root, request.limits.disk, self.inputs))
            mounts += [Bind(self.guard, GUARD_TARGET), *isolation.interpreter.mounts]
            if isinstance(places.report, str):
                mounts.append(Scratch(str(PurePosixPath(places.report).parent), _REPORT_SIZE))
        opened = request.network and isolation.guarded  # without any protection there is nothing to open
        return SandboxSpec(
            root=isolation.root,
            mounts=tuple(mounts),
            env=environment(request, places.root),
            cwd=places.root,
            network=Network.UNSAFE_HOST if opened else Network.NONE,
            limits=request.limits.for_sandbox(tmp_size(request.policy)),
            require=isolation.require - {Guarantee.NET} if opened else isolation.require,
        )

    async def _run(self, session: Session, places: Places) -> SandboxResult:
        request, isolation = self.request, self.isolation
        if not isolation.guarded:
            argv = plain_argv(request, isolation.interpreter, places.root)
            return await session.run(Command(argv, request.stdin, on_output=request.on_output))
        guarantees = isolation.capabilities.guarantees
        argv = guarded_argv(request, isolation.interpreter, places, guarantees, seal=self.seal)
        if isinstance(places.report, str):
            return await session.run(
                Command(argv, request.stdin, channels=request.channels, on_output=request.on_output)
            )
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            channels = {**request.channels, places.report: theirs}
            command = Command(argv, request.stdin, channels=channels, on_output=request.on_output)
            async with _reading(self.reported, ours):
                return await session.run(command)


@asynccontextmanager
async def _reading(capture: Capture, ours: socket.socket) -> AsyncIterator[None]:
    """Take what the guard reports while the program runs, so that a full socket never holds it up."""
    async with side_tasks() as tasks:
        tasks.start_soon(capture.drain, ours.fileno())
        yield
    capture.finish(ours.fileno())


def _leavings(session: Session, root: str, request: PythonRequest) -> tuple[Harvest, int | None]:
    try:
        descriptor = session.scratch(root)
    except CandidateError as error:  # what it left cannot be captured at all
        return Harvest({}, dict.fromkeys(request.outputs, str(error))), None
    return _taken(descriptor, request, own_file_system=True)


def _taken(root: int, request: PythonRequest, *, own_file_system: bool) -> tuple[Harvest, int | None]:
    harvest = take_outputs(root, request.outputs, request.limits.disk)
    inputs = len(request.program) + sum(map(len, request.files.values()))
    return harvest, bytes_left(root, inputs, own_file_system=own_file_system)


def _report_in(session: Session, path: str) -> bytes:
    try:
        return _report_beneath(session.scratch(str(PurePosixPath(path).parent)))
    except CandidateError:
        return b""


def _report_beneath(folder: int) -> bytes:
    return take_outputs(folder, (_REPORT_NAME,), _REPORT_SIZE).outputs.get(_REPORT_NAME, b"")[:MAX_REPORT]


def _check_started(seen: SandboxResult, said: Report) -> None:
    """A program that ran without the guard it should have had is our fault, never its result.

    A limit may be so low that the interpreter itself crosses it; that is the limit's result."""
    if said.installed is None and seen.outcome in (Outcome.EXITED, Outcome.SIGNALLED):
        words = seen.stderr.data[-2000:].decode("utf-8", "replace").strip() or "it said nothing"
        ended = f"exit code {seen.exit_code}" if seen.signal is None else f"signal {seen.signal}"
        raise SandboxError(f"the guard did not start ({ended}): {words}")


def _result(
    request: PythonRequest,
    isolation: Isolation,
    seen: SandboxResult,
    said: Report,
    harvest: Harvest,
    written: int | None,
) -> PythonResult:
    return PythonResult(
        outcome=_outcome(request, seen),
        exit_code=seen.exit_code,
        signal=seen.signal,
        stdout=seen.stdout,
        stderr=seen.stderr,
        blocked=said.blocked,
        wall_seconds=seen.usage.wall_seconds,
        cpu_seconds=seen.usage.cpu_seconds,
        peak_memory=seen.usage.peak_memory,
        bytes_written=None if written is None else written + seen.stdout.total + seen.stderr.total,
        outputs=harvest.outputs,
        refused=harvest.refused,
        isolation=isolation.level,
        # A program with the host's network is not isolated, whatever else holds.
        assurance="unsafe" if request.network else isolation.assurance,
        guarantees=seen.guarantees,
        installed=said.installed or (),
        fingerprint=seen.fingerprint,
    )


def _outcome(request: PythonRequest, seen: SandboxResult) -> Outcome:
    """What the backend saw, and two ends that only the limits inside the process explain."""
    limit, used = request.limits.cpu_seconds, seen.usage.cpu_seconds
    if seen.outcome is Outcome.SIGNALLED and seen.signal == signal.SIGKILL and limit is not None:
        # The kernel's own hard limit, in whole seconds, without a word to anybody.
        return Outcome.CPU_LIMIT if used is not None and used >= limit * 0.8 else seen.outcome
    if seen.outcome is Outcome.EXITED and seen.exit_code == 1 and Guarantee.MEM_HARD not in seen.guarantees:
        # Where no control group counts, memory is refused, and Python says so. A program that lies gains nothing.
        lines = seen.stderr.data.rstrip().rsplit(b"\n", 1)
        return Outcome.OUT_OF_MEMORY if lines[-1].startswith(b"MemoryError") else seen.outcome
    return seen.outcome
