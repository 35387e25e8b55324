"""The command line: one file per command; the only place that prints or exits.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 1 the check the command
makes did not hold, 2 usage or configuration, 3 infrastructure, 130 interrupted."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module

import click

from securebench.cli._interrupts import deliver_lost_interrupts, end_interrupted, was_interrupt
from securebench.errors import ConfigError, InfrastructureError, SecureBenchError

COMMANDS = {
    "audit": "Try what must fail on this host, and see that it does.",
    "compare": "Compare runs task by task: which is better, by how much, and could chance explain it?",
    "convert": "Write a pack's terminal tasks as task directories of Harbor.",
    "demo": "Watch an honest agent score and a cheating one not, in a few seconds.",
    "image": "Import container images for the embedded sandbox, without Docker.",
    "exec": "Run one Python file of a stranger's, confined, and say what came of it.",
    "export": "Write runs as Parquet, CSV, JSON lines, JUnit or SARIF, for other tools.",
    "doctor": "Show what the sandboxes of this host guarantee, and how to get more.",
    "gate": "Check what a run must have reached, one line per condition; for CI.",
    "grade": "Verify candidates that were produced elsewhere, from a file, on all cores.",
    "import": "Turn HumanEval, MBPP, GSM8K, MMLU and other people's benchmarks into packs.",
    "init": "Write a small working pack and tester YAML to start from.",
    "keys": "Make the key that seals your runs, and say whose keys you trust.",
    "query": "Ask the records of runs in SQL, which can read nothing else.",
    "regrade": "Verify a run's stored candidates again, and report every verdict that changed.",
    "report": "Make one page of runs: scores, attempts, failures, cost, integrity, details.",
    "run": "Run a benchmark pack with a harness and record every attempt.",
    "schema": "Print the JSON Schema of a manifest, a row or a tester YAML.",
    "serve": "Verify candidates over HTTP, for training loops on other machines.",
    "show": "Show a run in the terminal, or a task's attempts: candidate, tests, output, transcript.",
    "tools": "Fetch agent programs at pinned versions, so that runs need no network for them.",
    "validate": "Check a pack, and that answers without work do not score on it.",
    "view": "Look at the runs of a directory in the browser, also while they run.",
    "verify": "Check that runs are what was sealed, offline, from their files alone.",
}


class _Lazy(click.Group):
    """Imports a command's file when that command is used, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 — click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"securebench.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"securebench {version('securebench')}")
        ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def app() -> None:
    """Run AI models and agents against benchmark packs, with scores that can be believed."""


def main() -> None:
    """The console script: runs a command and turns what it raises into a message and an exit code."""
    deliver_lost_interrupts()
    try:
        code = app.main(standalone_mode=False, prog_name="securebench")
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        end_interrupted()
    except SecureBenchError as error:
        from securebench.cli._text import visible

        click.echo(_with_count(visible(str(error)), error), err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 3 if isinstance(error, InfrastructureError) else 1)
    except OSError as error:
        # The reader of our output went away, or its disk is full: what was to be done is done, or said above.
        with suppress(OSError):
            click.echo(f"error: output could not be written: {error.strerror}", err=True)
        sys.exit(3)
    except Exception as error:
        if not was_interrupt(error):
            raise
        end_interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def _with_count(message: str, error: Exception) -> str:
    problems = getattr(error, "problems", ())
    if problems:
        return f"{message}\n{len(problems)} problem{'s' if len(problems) > 1 else ''} found; nothing was run."
    return f"error: {message}"
