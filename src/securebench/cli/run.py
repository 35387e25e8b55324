"""`securebench run`: run a pack and show what came of it."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path

import click

from securebench.cli._run_options import audit_to_attach, end_with, selection, showing


@click.command()
@click.option(
    "--config", "config_path", required=True, type=click.Path(path_type=Path), help="The tester YAML of the run."
)
@selection
@click.option("--resume", is_flag=True, help="Continue a run: keep its records, run what is missing.")
@click.option(
    "--resume-anyway", is_flag=True, help="Continue although pack, harness or limits changed; the records say so."
)
@click.option("--output-dir", type=click.Path(path_type=Path), help="Write there instead of run.output_dir.")
@click.option("--env-file", type=click.Path(path_type=Path), help="Read variables, such as API keys, from a file.")
@click.option("--workers", type=click.IntRange(min=1), help="Agents side by side; default: by cores and memory.")
@click.option(
    "--executor", metavar="WHERE", help="local, ray, or the address of a Ray cluster whose nodes do the work."
)
@click.option("--publishable", is_flag=True, help="Refuse whatever a published result must not rest on.")
@click.option("--show-agent-output", is_flag=True, help="Mirror what agents print, here and to agent-trace.log.")
@click.option("--show-command-output", is_flag=True, help="Show the commands that are run in sandboxes.")
@showing
def command(
    config_path: Path,
    tasks: tuple[str, ...],
    tags: tuple[str, ...],
    limit: int | None,
    resume: bool,
    resume_anyway: bool,
    output_dir: Path | None,
    env_file: Path | None,
    workers: int | None,
    executor: str | None,
    publishable: bool,
    show_agent_output: bool,
    show_command_output: bool,
    quiet: bool,
    progress: str,
    with_audit: str | None,
    unsafe: bool,
    as_json: bool,
) -> int:
    """Run a benchmark pack with a harness and record every attempt.

    Records go to candidates.jsonl in the output directory, one line per attempt, with plan.json, summary.json and a
    signed seal.json beside it; `securebench verify` checks them."""
    from securebench.cli._agent_lines import agent_trace
    from securebench.cli._display import open_display
    from securebench.cli._exec_report import warn_unaudited
    from securebench.tester_config import load_env_file, load_tester_config
    from securebench.tester_run import run_tester_config, with_tester_overrides

    env = dict(os.environ) | (load_env_file(env_file) if env_file else {})
    config = with_tester_overrides(load_tester_config(config_path, env=env), output_dir=output_dir, executor=executor)
    if unsafe:
        warn_unaudited()
    if publishable:
        if unsafe:
            raise click.UsageError("--publishable refuses results without an audit; drop --unsafe")
        if limit is not None or tasks or tags:
            raise click.UsageError("--publishable runs the whole pack; drop --limit, --task and --tag")
        if resume_anyway:
            raise click.UsageError("--publishable needs one plan for all attempts; drop --resume-anyway")
        if not config.records.sign:
            raise click.UsageError("--publishable needs a seal; drop records.sign: false from the tester file")
        _check_publishable(config.manifest, config.tasks)
    with ExitStack() as stack:
        style = "quiet" if quiet else progress
        show = stack.enter_context(open_display(style, show_agent_output, show_command_output))
        if show_agent_output:
            show = stack.enter_context(agent_trace(config.output_dir, show))
        summary = run_tester_config(
            config,
            limit=limit,
            tasks=tasks,
            tags=tags,
            progress=show,
            resume=resume,
            workers=workers,
            unsafe=unsafe,
            resume_anyway=resume_anyway,
            with_audit=audit_to_attach(with_audit),
        )
    return end_with(summary, as_json)


def _check_publishable(manifest: Path, tasks: Path) -> None:
    from securebench.benchmark_pack import load_benchmark_pack
    from securebench.errors import ConfigError, Problem

    pack = load_benchmark_pack(manifest, tasks)
    unpinned = [
        Problem(str(tasks), entry.line, "environment.image", "is not pinned; write name@sha256:… to publish")
        for entry in pack.entries
        if entry.image and not re.search(r"@sha256:[0-9a-f]{64}$", entry.image)
    ]
    if unpinned:
        raise ConfigError(unpinned)
