"""`grade` and `agrade`: one compiled task, one candidate, one verdict, judged in this process.

For trying things out and for few candidates: a `Grader` judges many times as many. What a task needs is made ready
when the first of its kind comes, and kept for the life of the process."""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from functools import cache

import anyio
import anyio.to_thread
from anyio.from_thread import start_blocking_portal
from anyio.lowlevel import RunVar

from securebench._canonical import digest_value
from securebench._leftovers import staging_directory
from securebench.candidates.store import CandidateStore
from securebench.engine.attempt import Attempt, AttemptContext
from securebench.engine.court import open_court
from securebench.errors import ConfigError
from securebench.families.base import CandidateKind
from securebench.families.registry import FAMILIES
from securebench.grading.results import Candidate, sample_line, verdict
from securebench.harnesses.samples import SamplesProducer
from securebench.preparation import Prepared, prepare_sandbox
from securebench.progress import silent
from securebench.records.record import Identity
from securebench.sandboxes.base import Root, root_of
from securebench.tasks import SecureBenchTask
from securebench.tester_config import SandboxSection
from securebench.verifiers.base import VerificationResult

_WAITING = 64  # calls of `agrade` under way at once, each in a thread


def grade(task: SecureBenchTask, candidate: Candidate) -> VerificationResult:
    """The verdict on one candidate. Raises ConfigError for what is no candidate of this task, for what is no compiled
    task, and for one that needs a model judge, which only a `Grader` with a config has; SandboxUnavailable and
    AuditFailed where it cannot be judged here; InfrastructureError where the host or the pack failed."""
    future = _here(os.getpid()).submit(task, candidate)
    try:
        return future.result()
    except BaseException:  # also an interrupt: nobody waits for it any more
        future.cancel()
        raise


async def agrade(task: SecureBenchTask, candidate: Candidate) -> VerificationResult:
    """`grade` for code that runs in an event loop. Cancelling it ends its work."""
    left = threading.Event()
    futures: list[Future[VerificationResult]] = []

    def wait() -> VerificationResult:
        futures.append(_here(os.getpid()).submit(task, candidate))
        if left.is_set():
            futures[0].cancel()
        return futures[0].result()

    try:
        return await anyio.to_thread.run_sync(wait, abandon_on_cancel=True, limiter=_threads())
    finally:
        left.set()
        for future in futures:
            future.cancel()


_limiter: RunVar[anyio.CapacityLimiter] = RunVar("securebench_grading_threads")


def _threads() -> anyio.CapacityLimiter:
    """Of this event loop."""
    try:
        return _limiter.get()
    except LookupError:
        _limiter.set(made := anyio.CapacityLimiter(_WAITING))
        return made


class _Here:
    """The courts of this process, in an event loop of their own."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._portal = self._open.enter_context(start_blocking_portal())
        self._running = anyio.CapacityLimiter(len(os.sched_getaffinity(0)))
        self._contexts: dict[Root | None, AttemptContext] = {}
        self._lock = threading.Lock()
        atexit.register(self._close, os.getpid())

    def _close(self, owner: int) -> None:
        """In a forked process it is the other one's: there is no thread here that could be asked to end."""
        if owner == os.getpid():
            self._open.close()

    def submit(self, task: SecureBenchTask, candidate: Candidate) -> Future[VerificationResult]:
        if not isinstance(task, SecureBenchTask):
            raise ConfigError(
                "a task is one of compile_benchmark_pack(load_benchmark_pack(manifest, tasks)); "
                "a Grader(pack) takes the names of tasks"
            )
        line = sample_line(task.id, CandidateKind(task.candidate_kind), candidate)
        return self._portal.start_task_soon(self._grade, self._context(task), task, line)

    def _context(self, task: SecureBenchTask) -> AttemptContext:
        root = root_of(task.environment.image) if FAMILIES[task.task_type].executes else None
        with self._lock:
            if root not in self._contexts:
                opened = self._portal.wrap_async_context_manager(_open_context(root))
                self._contexts[root] = self._open.enter_context(opened)
            return self._contexts[root]

    async def _grade(self, context: AttemptContext, task: SecureBenchTask, line: bytes) -> VerificationResult:
        attempt = Attempt(context, task, 1, sample=line)
        async with self._running:
            await attempt.produce()
            await attempt.verify()
        return verdict((await attempt.record()).record)


@cache
def _here(pid: int) -> _Here:  # noqa: ARG001 — a forked process has none of its parent's threads
    return _Here()


@asynccontextmanager
async def _open_context(root: Root | None) -> AsyncIterator[AttemptContext]:
    ready = Prepared() if root is None else await prepare_sandbox(SandboxSection(), [root], lambda _: None)
    identity = Identity("grading", "", digest_value({}), "samples", ready.audit)
    with staging_directory() as private:
        private.chmod(0o700)
        candidates = CandidateStore(private / "candidates")
        async with open_court(ready.sandbox, candidates, secrets.token_bytes(32)) as court:
            yield AttemptContext(identity, SamplesProducer(), silent, candidates, court)
