"""`grade_samples`: the run whose candidates come from a file. Plan, chain, seal and everything that reads them are
those of any other run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from securebench.benchmark_pack import candidate_kinds, find_pack, load_benchmark_pack
from securebench.harnesses.sample_file import STDIN, SampleFile, open_samples
from securebench.progress import Event, Progress, ProgressEvent, silent
from securebench.records.summary import TesterRunSummary
from securebench.tester_config import RunSection03, TesterConfig, parse_tester_config
from securebench.tester_run import RunOptions, Work, run_work, with_tester_overrides

RUNS = Path("runs")


def grade_samples(
    pack: Path | str,
    samples: Path | str,
    *,
    output_dir: Path | str | None = None,
    config: TesterConfig | None = None,
    limit: int | None = None,
    tasks: Iterable[str] = (),
    tags: Iterable[str] = (),
    ignore_missing: bool = False,
    progress: Progress | None = None,
    resume: bool = False,
    processes: int | None = None,
    unsafe: bool = False,
    with_audit: bool | Path = False,
    executor: str | None = None,
) -> TesterRunSummary:
    """Judge every sample of a file (`-`: standard input) for a pack, with as many processes as there are cores.

    Records go to `output_dir`, or to `runs/NAME-DIGEST`, named after the samples. `config` brings the verification
    policy, the sandbox, the judge and the key of a tester file. A task without a sample fails and stays counted, unless
    `ignore_missing` leaves such tasks out, which plan and summary state. `executor` is `local`, `ray`, or the address
    of a cluster, whose nodes then judge. The rest is as in `run_tester_config`.

    Raises ConfigError with every problem of pack and samples, SandboxUnavailable, AuditFailed or StoreError before
    anything runs."""
    manifest, rows = find_pack(Path(pack))
    loaded = load_benchmark_pack(manifest, rows)
    options = RunOptions(
        limit=limit,
        tasks=tuple(tasks),
        tags=tuple(tags),
        resume=resume,
        unsafe=unsafe,
        with_audit=with_audit,
        ignore_missing=ignore_missing,
        processes=processes or len(os.sched_getaffinity(0)),
    )
    progress = progress or silent
    with open_samples(Path(samples), candidate_kinds(loaded)) as given:
        name = _name(Path(samples), given)
        if output_dir is None:
            message = f"records go to {RUNS / name}"
            progress(ProgressEvent(Event.RUN_NOTICE, data={"message": message}))
        made = _config(config, manifest, rows, str(samples), name, Path(output_dir or RUNS / name))
        made = with_tester_overrides(made, executor=executor)
        return run_work(made, options, progress, Work(loaded, given))


def _config(
    config: TesterConfig | None, manifest: Path, rows: Path, samples: str, name: str, output_dir: Path
) -> TesterConfig:
    """The tester file that would run these samples, with what the given one decides about verdicts."""
    made = parse_tester_config(
        {
            "schema_version": "0.3",
            "run": {"id": name, "output_dir": str(output_dir.absolute())},
            "benchmark": {"manifest": str(manifest), "tasks": str(rows)},
            "harness": {"type": "samples", "config": {"path": samples}},
        }
    )
    if config is None:
        return made
    return replace(
        made,
        run=RunSection03(id=name, output_dir=made.run.output_dir, seed=config.run.seed),
        verification=config.verification,
        sandbox=config.sandbox,
        judge=config.judge,
        judge_key=config.judge_key,
        executor=config.executor,
        records=config.records,
        base=config.base,
    )


def _name(path: Path, samples: SampleFile) -> str:
    """Of the file, as far as it can be a name, and of what is in it."""
    stem = "stdin" if str(path) == STDIN else re.sub(r"(\.jsonl?|\.eval)?(\.gz)?$", "", path.name)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.")[:80]
    return f"{plain or 'samples'}-{samples.digest.removeprefix('sha256:')[:12]}"
