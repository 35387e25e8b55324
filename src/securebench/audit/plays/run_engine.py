"""A whole small run through the real engine on the ground's backend: plan, lanes, attempts, court, records, seal.

Only what stands before a run is left out, the audit of the walls: it is what this suite is."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from securebench._leftovers import staging_directory
from securebench.audit.suite.attack import Ground, Stopped
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.engine.admission import Memory, memory_for_attempts
from securebench.engine.attempt import AttemptContext
from securebench.engine.court import Court
from securebench.engine.executors.local import LocalExecutor
from securebench.engine.lanes import Lanes, order_for
from securebench.engine.notary import Notary
from securebench.engine.planning import Circumstances, make_plan, secret_seed
from securebench.engine.resume import open_run
from securebench.harnesses.factory import build_harness_producer
from securebench.progress import Event, ProgressEvent, Unbreakable, both
from securebench.records.events import EVENTS_FILE, EventLog, lost_starts
from securebench.records.keys import SigningKey, load_signing_key
from securebench.records.plan import Filters
from securebench.records.record import Identity
from securebench.records.store import MAX_LINE, RECORDS_FILE, RecordStore
from securebench.records.summary import TesterRunSummary, write_summary
from securebench.sandboxes.base import ImageRoot, Sandbox
from securebench.tester_config import parse_tester_config

OUTPUT = "out"
WrapSandbox = Callable[[Sandbox], Sandbox]


@dataclass(frozen=True, slots=True)
class Bench:
    """What is run: rows as JSON, files of the pack, and a Python program as the agent of all tasks."""

    rows: tuple[str, ...]
    agent: str
    files: tuple[tuple[str, str], ...] = ()
    attempts: int = 1
    artifact: str | None = None
    more: str = "{}"  # further sections of the tester file, as JSON


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of it."""

    directory: Path
    records: tuple[dict[str, Any], ...]
    summary: TesterRunSummary
    starts: Mapping[tuple[str, int], int]  # how often the agent of each attempt was started

    def record(self, task: str) -> dict[str, Any]:
        return next(record for record in self.records if record["task_id"] == task)


def lay_out(ground: Ground, bench: Bench) -> Path:
    """The pack and its tester file in the ground's directory."""
    directory = ground.directory / "bench"
    directory.mkdir(exist_ok=True)
    for name, text in (("manifest.yaml", "id: played\nversion: 1\n"), *bench.files):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    rows = [_on(ground, json.loads(row)) for row in bench.rows]
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (directory / "tester.yaml").write_text(json.dumps(tester_file(bench)))
    return directory


def tester_file(bench: Bench) -> dict[str, Any]:
    config: dict[str, Any] = {"command": ["python3", "-c", bench.agent]}
    if bench.artifact is not None:
        config["artifact_path"] = bench.artifact
    return {
        "schema_version": "0.3",
        "run": {"id": "played", "output_dir": OUTPUT, "attempts": bench.attempts, "max_workers": 1},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": config},
        **json.loads(bench.more),
    }


async def carry_out(
    ground: Ground,
    bench: Bench,
    *,
    key: SigningKey | None = None,
    resume: bool = False,
    first: int | None = None,
    longest_record: int = MAX_LINE,
    wrap: WrapSandbox = lambda sandbox: sandbox,
) -> Carried:
    """Run it, of what is missing only the `first` attempts where given, and seal it. Raises what the engine raises."""
    directory = lay_out(ground, bench)
    config = parse_tester_config(tester_file(bench), base_dir=directory)
    tasks = compile_benchmark_pack(load_benchmark_pack(config.manifest, config.tasks))
    sandbox = wrap(ground.sandbox)
    starts: Counter[tuple[str, int]] = Counter()

    def progress(event: ProgressEvent) -> None:
        if event.event is Event.AGENT_STARTED:
            starts[str(event.task_id), event.attempt or 0] += 1

    seed, now = secret_seed(config), time.time()
    plan = make_plan(config, tasks, Filters(), Circumstances(sandbox.name), seed, now)
    journal = config.output_dir / EVENTS_FILE
    with RecordStore(config.output_dir) as store, staging_directory() as private, EventLog(journal) as events:
        run = await open_run(store, plan, seed, now=now, resume=resume)
        todo = list(run.missing(lost_starts(journal)))[:first]
        candidates = CandidateStore(store.directory / "candidates")
        identity = Identity(plan.run_id, plan.pack_digest, plan.config_digest, config.harness.type)
        court = Court(sandbox, CandidateStore(private / "store", candidates), run.seed or b"")
        listener = both(Unbreakable(events), progress)
        producer = build_harness_producer(config, sandbox)
        context = AttemptContext(identity, producer, listener, candidates, court, longest_record)
        executor = LocalExecutor(context, tasks, Memory(memory_for_attempts()), 1, 1)
        lanes = Lanes(
            executor, store, run.tally, run.statuses, run.faults, iter(todo), partial(order_for, tasks), listener
        )
        signer = key or load_signing_key(None, ground.directory / "no-keys", {})
        notary = Notary(signer, run.plan, run.begun_with, store, run.seed or b"", run.statuses)
        notary.begin()
        await lanes.run()
        if run.tally.interrupted:
            raise Stopped
        run.tally.interrupted = first is not None
        summary = run.tally.summary(0.0)
        write_summary(store.directory, summary)
        notary.seal(complete=first is None and not summary.errors)
    return Carried(config.output_dir, read_back(config.output_dir), summary, starts)


def read_back(run: Path) -> tuple[dict[str, Any], ...]:
    """The records as any tool reads them: one line, one value."""
    return tuple(json.loads(line) for line in (run / RECORDS_FILE).read_text().splitlines())


def _on(ground: Ground, row: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(ground.root, ImageRoot):
        return row
    return row | {"environment": {**row.get("environment", {}), "image": ground.root.reference}}


def question(name: str, **environment: Any) -> str:
    """A task whose answer is 42."""
    row: dict[str, Any] = {"id": name, "family": "short_answer", "input": {"question": "6 * 7?"}}
    return json.dumps(row | {"eval": {"accepted_answers": [42]}, "environment": environment})


def function(name: str, **environment: Any) -> str:
    """A task whose answer is a function that doubles."""
    given = {"prompt": "Write f(x), which doubles x.", "language": "python", "entry_point": "f"}
    tests = {"source": "cases", "cases": [{"args": [number], "expected": 2 * number} for number in (1, 21, 50)]}
    row = {"id": name, "family": "code_completion", "input": given, "eval": {"tests": tests}}
    return json.dumps(row | {"environment": environment})


def errand(name: str, **environment: Any) -> str:
    """A task that wants a file `done.txt` with the right word in it."""
    row: dict[str, Any] = {"id": name, "family": "terminal_task", "input": {"instructions": "Write it."}}
    checker = {"checker": {"source": "script", "path": "check.sh"}}
    return json.dumps(row | {"eval": checker, "environment": environment})


ERRAND_FILES = (("hidden/check.sh", 'cd "$SECUREBENCH_WORKSPACE" && test "$(cat done.txt)" = right\n'),)
