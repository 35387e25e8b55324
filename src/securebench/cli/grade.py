"""`securebench grade`: verdicts for candidates that were produced elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import click

from securebench.cli._run_options import audit_to_attach, end_with, selection, showing


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@click.argument("samples", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output-dir", type=click.Path(path_type=Path), help="Records go there; default: runs/NAME-DIGEST."
)
@click.option("--resume", is_flag=True, help="Continue: keep the records, judge what is missing.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes that judge; default: the number of cores.")
@click.option("--executor", metavar="WHERE", help="local, ray, or the address of a Ray cluster whose nodes judge.")
@selection
@click.option("--ignore-missing", is_flag=True, help="Leave tasks out that have no sample; the summary says so.")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="A tester YAML, for its verification policy, sandbox, judge and key.",
)
@click.option("--env-file", type=click.Path(path_type=Path), help="Read variables, such as a judge's key, from a file.")
@showing
def command(
    pack: Path,
    samples: Path,
    output_dir: Path | None,
    resume: bool,
    workers: int | None,
    executor: str | None,
    tasks: tuple[str, ...],
    tags: tuple[str, ...],
    limit: int | None,
    ignore_missing: bool,
    config_path: Path | None,
    env_file: Path | None,
    quiet: bool,
    progress: str,
    with_audit: str | None,
    unsafe: bool,
    as_json: bool,
) -> int:
    """Verify the candidates in SAMPLES for the tasks of PACK, on all cores, and record every verdict.

    PACK is a pack's directory, manifest or tasks file. SAMPLES has one JSON object per line, plain or gzip, - for
    standard input: task_id with completion (what follows the prompt) or solution (the whole program or answer), or
    instance_id with model_patch. Or it is one JSON file of predictions, a directory of EvalPlus, a log of Inspect, a
    job of Harbor. The n-th sample of a task is its attempt n; a task without one counts as failed.

    The records are those of a run: `securebench verify` and `regrade` take them."""
    from securebench.cli._display import open_display
    from securebench.cli._exec_report import warn_unaudited
    from securebench.sample_run import grade_samples
    from securebench.tester_config import load_env_file, load_tester_config

    env = dict(os.environ) | (load_env_file(env_file) if env_file else {})
    config = None if config_path is None else load_tester_config(config_path, env=env)
    if unsafe:
        warn_unaudited()
    with open_display("quiet" if quiet else progress, show_agent_output=False) as show:
        summary = grade_samples(
            pack,
            samples,
            output_dir=output_dir,
            config=config,
            limit=limit,
            tasks=tasks,
            tags=tags,
            ignore_missing=ignore_missing,
            progress=show,
            resume=resume,
            processes=workers,
            executor=executor,
            unsafe=unsafe,
            with_audit=audit_to_attach(with_audit),
        )
    return end_with(summary, as_json)
