"""The change policy by itself: pure, so that no backend has a part in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from anyio import to_thread

from securebench.audit.suite.attack import End, Ground, Seen
from securebench.candidates.change_policy import ChangePolicy
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Change, Delta, TreeEntry

PROTECTED = "tests/test_hidden.py"
Judge = Callable[[Delta], object]


@dataclass(frozen=True, slots=True)
class ChangeOf:
    """A file of the pack is changed, and the change wants to count."""

    path: str
    before: str
    after: str

    async def on(self, ground: Ground) -> Seen:
        store = CandidateStore(ground.directory / "store")
        before, after = (_entry(self.path, text.encode(), store) for text in (self.before, self.after))
        judgement = ChangePolicy().judge(Delta(changed=(Change(before, after),)), store.read)
        [decision] = judgement.decisions
        return Seen(End.REACHED if judgement.allowed else End.MISSED, decision.reason, str(decision.outcome))


def _entry(path: str, data: bytes, store: CandidateStore) -> TreeEntry:
    return TreeEntry.file(path, store.put(data), len(data))


@dataclass(frozen=True, slots=True)
class Links:
    """`count` links, each of which leads through the next one and many directories; with `steps` of 1, nowhere special.
    They want to keep whoever judges them busy for longer than `seconds` of processor time."""

    count: int
    steps: int
    seconds: float

    async def on(self, _: Ground) -> Seen:
        policy = ChangePolicy(protected=frozenset({PROTECTED}))
        return await to_thread.run_sync(self.timed, lambda delta: policy.judge(delta, _no_blob))

    def timed(self, judge: Judge) -> Seen:
        """What a judge makes of them."""
        delta = self.delta()
        began = time.thread_time()
        judge(delta)
        took = time.thread_time() - began
        return Seen(End.REACHED if took >= self.seconds else End.MISSED, f"judged after {took:.1f} s of processor time")

    def delta(self) -> Delta:
        names = [f"l{number:06}" for number in range(self.count)]
        rest = "/a" * (self.steps - 1)
        return Delta(
            added=tuple(
                TreeEntry.link(name, f"{following}{rest}")
                for name, following in zip(names, [*names[1:], names[0]], strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class OrdinaryLinks:
    """Links as a package manager leaves them, which want to count."""

    count: int

    async def on(self, _: Ground) -> Seen:
        links = tuple(TreeEntry.link(f"l{number:06}", f"pkg/bin/{number}") for number in range(self.count))
        judgement = ChangePolicy(protected=frozenset({PROTECTED})).judge(Delta(added=links), _no_blob)
        allowed = len(judgement.allowed.added)
        return Seen(
            End.REACHED if allowed == self.count else End.MISSED, f"{allowed} of {self.count} links are allowed"
        )


def _no_blob(_: str, __: int) -> bytes:
    return b""
