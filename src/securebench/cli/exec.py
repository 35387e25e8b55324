"""`securebench exec`: run one Python file of a stranger's and show what came of it."""

from __future__ import annotations

import os
import select
import signal
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from securebench.audit.result import AuditResult
    from securebench.execution.isolation import Isolation
    from securebench.execution.request import PythonLimits, PythonRequest

T = TypeVar("T")

LEVELS = ("auto", "guard", "bubblewrap", "docker")
POLICIES = ("strict", "standard", "off")
_MAX_STDIN = 64 * 1024 * 1024
_PATIENCE = 2.0

_POSITIVE = click.FloatRange(min=0, min_open=True)
_COUNT = click.IntRange(min=1)


@click.command(
    epilog="Settings: SECUREBENCH_PYTHON names the interpreter, SECUREBENCH_PYTHON_IMAGE the image for docker."
    " Exit codes: 0 the program exited with 0, 1 it did not, 2 usage, 3 infrastructure, 130 interrupted."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("args", nargs=-1)
@click.option("--timeout", type=_POSITIVE, default=60.0, show_default=True, metavar="S", help="Wall-clock seconds.")
@click.option("--mem", type=_COUNT, default=512, show_default=True, metavar="MB", help="Memory in MiB.")
@click.option("--cpu", type=_POSITIVE, metavar="S", help="Processor seconds.")
@click.option("--cpu-share", type=_POSITIVE, metavar="X", help="Share of one core, such as 0.5; needs control groups.")
@click.option("--pids", type=_COUNT, default=64, show_default=True, metavar="N", help="Processes and threads.")
@click.option(
    "--input",
    "inputs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Copy a file or directory in, under its own name. May be repeated.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="PATH",
    help="Take this file out afterwards; needs --output-dir. May be repeated.",
)
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Where the outputs go.")
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default="strict",
    show_default=True,
    help="What the guard forbids inside the interpreter.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="ITEM",
    help="Allow dynamic_code, imports, imports:MODULE, reload or tampering. May be repeated.",
)
@click.option(
    "--isolation",
    "level",
    type=click.Choice(LEVELS),
    default="auto",
    show_default=True,
    help="How the program is confined.",
)
@click.option("--allow-network", is_flag=True, help="UNSAFE: give the program this host's network.")
@click.option("--unsafe", is_flag=True, help="UNSAFE: no audit, no guard, no isolation.")
@click.option("--trace-blocked", is_flag=True, help="List every blocked operation with its source line.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def command(
    file: Path,
    args: tuple[str, ...],
    inputs: tuple[Path, ...],
    outputs: tuple[str, ...],
    output_dir: Path | None,
    level: str,
    unsafe: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Run a stranger's Python FILE, confined, with ARGS after `--`.

    The program gets a root directory of its own (AIBB_TMP) with its file and the inputs, and no way to anything
    else: no other files, no processes, no network. Standard input is passed on unless it is a terminal."""
    from securebench.cli import _exec_report as shown
    from securebench.execution.inputs import read_inputs, read_program

    if unsafe and level != "auto":
        raise click.UsageError(f"--unsafe switches isolation off; it does not go with --isolation {level}")
    if outputs and output_dir is None:
        raise click.UsageError("--output needs --output-dir, the directory to put it in")
    name, program = read_program(file)
    files = read_inputs(inputs)
    if output_dir is not None:
        shown.check_free(output_dir, outputs)
    passage = None if as_json else shown.Passage()
    request = _request(program, name, files, args, outputs, passage, options)
    if unsafe:
        shown.warn_unsafe()
    elif request.network:
        shown.warn_network()
    isolation = _uninterrupted(_selecting(level, unsafe))
    audit = None if unsafe else _audit(isolation)
    result = _uninterrupted(_running(request, isolation))
    if passage is not None:
        passage.finish()
    kept = shown.keep(result, output_dir) if output_dir is not None else {}
    if as_json:
        shown.print_json(result, kept, audit)
    else:
        shown.print_end(result, request.limits, trace=options["trace_blocked"])
    return 0 if result.ok and not result.refused else 1


def _request(
    program: bytes,
    name: str,
    files: dict[str, bytes],
    args: tuple[str, ...],
    outputs: tuple[str, ...],
    on_output: Callable[[str, bytes], None] | None,
    options: dict[str, Any],
) -> PythonRequest:
    from securebench.execution.request import Policy, PythonRequest

    return PythonRequest(
        program=program,
        name=name,
        files=files,
        args=args,
        stdin=_stdin(),
        policy=Policy(options["policy"]),
        allow=options["allow"],
        limits=_limits(options),
        network=options["allow_network"],
        outputs=outputs,
        on_output=on_output,
    )


def _limits(options: dict[str, Any]) -> PythonLimits:
    from securebench.execution.request import PythonLimits
    from securebench.sandboxes.base import MIB

    return PythonLimits(
        timeout=options["timeout"],
        memory=options["mem"] * MIB,
        cpu_seconds=options["cpu"],
        cpu_share=options["cpu_share"],
        pids=options["pids"],
    )


def _stdin() -> bytes:
    """Everything on standard input, unless that is a terminal or closed."""
    from securebench.errors import ConfigError

    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return b""
    if os.isatty(0) or stat.S_ISCHR(mode):
        return b""
    if not select.select([0], [], [], _PATIENCE)[0]:
        click.echo("note: waiting for standard input to end; close it if there is none: < /dev/null", err=True)
    data = bytearray()
    try:
        while chunk := os.read(0, 1 << 20):
            data += chunk
            if len(data) > _MAX_STDIN:
                raise ConfigError(f"standard input holds more than {_MAX_STDIN >> 20} MiB; use --input for large data")
    except OSError:
        return bytes(data)  # opened for writing only, or a directory
    return bytes(data)


def _audit(isolation: Isolation) -> AuditResult:
    """The pre-run audit of this level. Raises SandboxError when a wall is missing: nothing was run then."""
    from securebench.audit.prerun import AuditFailed, require_audit
    from securebench.cli import app
    from securebench.errors import SandboxError

    try:
        return require_audit(isolation, app=app)
    except AuditFailed as failed:
        raise SandboxError(str(failed)) from failed


def _selecting(level: str, unsafe: bool) -> Callable[[], Awaitable[Isolation]]:
    from securebench.execution.isolation import select_isolation, unsafe_isolation

    return unsafe_isolation if unsafe else lambda: select_isolation(level)


def _running(request: PythonRequest, isolation: Isolation) -> Callable[[], Awaitable[Any]]:
    from securebench.execution.run import run_python

    return lambda: run_python(request, isolation)


def _uninterrupted(job: Callable[[], Awaitable[T]]) -> T:
    """What `job` returns. SIGINT and SIGTERM end it in order, with everything it started, and raise Abort."""
    import anyio

    async def main() -> list[T]:
        done: list[T] = []
        with anyio.CancelScope() as scope, anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:

            async def watch() -> None:
                async for _ in signals:
                    scope.cancel()

            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(watch)
                    done.append(await job())
                    group.cancel_scope.cancel()
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] if len(errors.exceptions) == 1 else errors from None
        return done

    done = anyio.run(main)
    if not done:
        raise click.Abort
    return done[0]
