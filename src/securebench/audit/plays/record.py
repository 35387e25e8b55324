"""A small run that was really made, interrupted, continued and sealed, once for each backend; copies of it that
somebody changes; and the real code that verifies, continues and regrades runs."""

from __future__ import annotations

import atexit
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import anyio
from anyio import to_thread

from securebench._leftovers import staging_directory
from securebench.audit.plays.run_engine import ERRAND_FILES, OUTPUT, Bench, carry_out, errand, question
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.engine.admission import Memory, memory_for_attempts
from securebench.engine.court import Court
from securebench.engine.regrade import Regrading
from securebench.engine.regrade_report import Regraded
from securebench.engine.since import Since
from securebench.engine.stored_run import StoredRun
from securebench.errors import SecureBenchError
from securebench.evidence.verify import verify_run
from securebench.records.keys import SigningKey, load_signing_key, new_key
from securebench.records.plan import load_plan
from securebench.records.summary import summarize

BENCH = Bench(
    rows=(question("right"), question("wrong"), errand("errand")),
    agent="""
import json
task = json.load(open("task.json"))["task_id"]
if task == "errand":
    open("done.txt", "w").write("wrong word")
print("Answer: 42" if task == "right" else "Answer: 41")
""",
    files=ERRAND_FILES,
    attempts=2,
)
FIRST = 4  # attempts before the interruption
Change = Callable[[Path, SigningKey], None]
"""What somebody does to a run directory, who has a key of their own and not that of its maker."""


def nothing(run: Path, key: SigningKey) -> None:
    """The run stays as it is."""


@dataclass(frozen=True, slots=True)
class Made:
    """`sealed` is the finished run, `begun` the same before it was continued, each in the directory of its pack."""

    sealed: Path
    begun: Path
    maker: SigningKey
    stranger: SigningKey

    def copy(self, ground: Ground, which: Path) -> Path:
        """A run directory to change, where `carry_out` finds it."""
        shutil.copytree(which, ground.directory / "bench", symlinks=True)
        return ground.directory / "bench" / OUTPUT


_made: dict[str, Made] = {}
_locks: dict[str, anyio.Lock] = {}


async def made_on(ground: Ground) -> Made:
    """The same for every play on a backend."""
    async with _locks.setdefault(ground.backend, anyio.Lock()):
        if ground.backend not in _made:
            _made[ground.backend] = await _make(ground)
    return _made[ground.backend]


async def _make(ground: Ground) -> Made:
    directory = Path(mkdtemp(dir=_lasting_directory()))
    for name in ("maker", "stranger"):
        new_key(name, directory / "keys")
    maker, stranger = (load_signing_key(name, directory / "keys") for name in ("maker", "stranger"))
    there = replace(ground, directory=directory)
    await carry_out(there, BENCH, key=maker, first=FIRST)
    shutil.copytree(directory / "bench", directory / "begun", symlinks=True)
    await carry_out(there, BENCH, key=maker, resume=True)
    return Made(directory / "bench", directory / "begun", maker, stranger)


@cache
def _lasting_directory() -> Path:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(staging_directory())


@dataclass(frozen=True, slots=True)
class Verified:
    """Who changed a sealed run, or put back what it was when it was interrupted, wants it verified all the same, as a
    complete one of its maker's."""

    change: Change
    rolled_back: bool = False

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        which = made.begun if self.rolled_back else made.sealed
        return await to_thread.run_sync(self._verify, made, made.copy(ground, which))

    def _verify(self, made: Made, run: Path) -> Seen:
        self.change(run, made.stranger)
        result = verify_run(run, {made.maker.id: "maker"}, made.maker.id)
        if not result.ok:
            return Seen(End.MISSED, str(result.errors[0]))
        complete = result.facts["status"] == "complete"
        return Seen(End.REACHED if complete else End.MISSED, f"verified: {dict(result.facts)}"[:300])


@dataclass(frozen=True, slots=True)
class Continued:
    """Who changed a run that was interrupted wants it to be continued all the same, under these terms."""

    change: Change
    bench: Bench = BENCH

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        self.change(made.copy(ground, made.begun), made.stranger)
        try:
            carried = await carry_out(ground, self.bench, key=made.maker, resume=True)
        except SecureBenchError as error:
            return Seen(End.MISSED, str(error)[:300], type(error).__name__)
        return Seen(End.REACHED, f"continued to {len(carried.records)} records, {carried.summary.passed} passed")


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """Who changed a sealed run wants a task that failed to pass when its stored candidate is judged again."""

    change: Change
    task: str = "errand"
    wanted: str = "passed"

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        run = made.copy(ground, made.sealed)
        self.change(run, made.stranger)
        try:
            found = [one for one in await regraded(ground, run) if one.task_id == self.task]
        except SecureBenchError as error:
            return Seen(End.MISSED, str(error)[:300], type(error).__name__)
        got = any(one.new is not None and one.new.status == self.wanted for one in found)
        return Seen(End.REACHED if got else End.MISSED, "; ".join(f"{one.category} {one.why}" for one in found)[:300])


async def regraded(ground: Ground, directory: Path) -> list[Regraded]:
    """All stored candidates of a run before the present verifiers."""
    pack = load_benchmark_pack(directory.parent / "manifest.yaml", directory.parent / "tasks.jsonl")
    run = StoredRun(directory)
    seed, origin = run.seed()
    regrading = Regrading(
        run=run,
        tasks=compile_benchmark_pack(pack),
        court=Court(ground.sandbox, CandidateStore(ground.directory / "private", run.candidates), seed),
        since=Since(run.plan, pack, origin),
        memory=Memory(memory_for_attempts()),
        workers=1,
        on_done=lambda _: None,
    )
    if not await regrading.judge_all(list(run.recorded())):
        raise KeyboardInterrupt  # it took the signal that was meant for all of us
    return regrading.done


@dataclass(frozen=True, slots=True)
class Averaged:
    """Of two attempts at each task one passes; whoever publishes wants the better one counted."""

    best: float = 1.0

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        plan = load_plan(made.sealed / OUTPUT)[0]
        score = summarize(plan, one_of_two(made.sealed / OUTPUT)).score
        return Seen(End.REACHED if score is None or score >= self.best else End.MISSED, f"the score is {score}")


def one_of_two(run: Path) -> list[dict[str, Any]]:
    """The records of a run, with the verdicts of a harness that is right at every second attempt."""
    return [
        record | _verdict(record["attempt"] == 2)  # the last one, so that it is also the one that would overwrite
        for record in map(json.loads, (run / "candidates.jsonl").read_bytes().splitlines())
    ]


def _verdict(passed: bool) -> Mapping[str, Any]:
    status, reason = ("passed", None) if passed else ("failed", "wrong_answer")
    return {"passed": passed, "score": float(passed), "verification_status": status, "failure_reason": reason}
