"""`SyncGrader`: a grader for ordinary threads. Its event loop runs in a thread of its own."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from securebench.benchmark_pack import BenchmarkPack
from securebench.errors import ConfigError
from securebench.grading.grader import Grader, GraderMetrics
from securebench.grading.results import Candidate, Task
from securebench.grading.window import SHOWN_LATER
from securebench.verifiers.base import VerificationResult


class _UnderWay:
    """How many futures are not done."""

    def __init__(self) -> None:
        self.number = 0
        self._changed = threading.Condition()

    def add(self, future: Future[VerificationResult]) -> Future[VerificationResult]:
        with self._changed:
            self.number += 1
        future.add_done_callback(self._one_less)
        return future

    def wait_for_less_than(self, number: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.number < number)

    def _one_less(self, _: Future[VerificationResult]) -> None:
        with self._changed:
            self.number -= 1
            self._changed.notify_all()


class SyncGrader:
    """What `Grader.sync` gives. Any number of threads may use it at once."""

    def __init__(self, grader: Grader) -> None:
        self._grader = grader
        self._portal: BlockingPortal | None = None
        self._owner = 0  # the process that entered it: in a forked one there is no event loop to ask
        self._open = ExitStack()

    @property
    def pack(self) -> BenchmarkPack:
        return self._grader.pack

    @property
    def metrics(self) -> GraderMetrics:
        """How it stands now. Raises ConfigError in a forked process."""
        self._check_owner()
        return self._grader.metrics

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(portal.wrap_async_context_manager(self._grader))
            self._portal, self._owner = portal, os.getpid()
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What is still being judged is ended. In a forked process nothing is: it is the other one's."""
        self._portal = None
        if self._owner == os.getpid():
            self._open.__exit__(kind, error, trace)

    def grade(
        self, task: Task, candidate: Candidate, *, wait: bool = True, timeout: float | None = None
    ) -> VerificationResult:
        """As `Grader.grade`. Raises TimeoutError after `timeout` seconds; the work on it is then ended."""
        future = self.submit(task, candidate, wait)
        try:
            return future.result(timeout)
        except BaseException:  # also an interrupt: nobody waits for it any more
            future.cancel()
            raise

    def grade_many(self, pairs: Iterable[tuple[Task, Candidate]]) -> Iterator[VerificationResult]:
        """As `Grader.grade_many`: verdicts in the order of the pairs."""
        self._entered()
        most = self._grader.places
        window: deque[Future[VerificationResult]] = deque()
        under_way = _UnderWay()
        try:
            for task, candidate in pairs:
                window.append(under_way.add(self.submit(task, candidate, True)))
                while (long := len(window) >= SHOWN_LATER * most) or under_way.number >= most:
                    if long or window[0].done():
                        yield window.popleft().result()
                    else:
                        under_way.wait_for_less_than(most)
            while window:
                yield window.popleft().result()
        finally:
            for future in window:
                future.cancel()

    def submit(self, task: Task, candidate: Candidate, wait: bool = True) -> Future[VerificationResult]:
        """`grade` without waiting for it: for callers with an event loop of their own. Cancelling ends the work."""
        return self._entered().start_task_soon(partial(self._grader.grade, task, candidate, wait=wait))

    def _entered(self) -> BlockingPortal:
        self._check_owner()
        if self._portal is None:
            raise ConfigError("a grader is used within its context: with Grader.sync(…) as grader")
        return self._portal

    def _check_owner(self) -> None:
        if self._owner not in (0, os.getpid()):
            raise ConfigError("a grader cannot be used in a forked process; open one there")
