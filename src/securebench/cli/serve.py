"""`securebench serve`: verdicts over HTTP."""

from __future__ import annotations

import ipaddress
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import socket

TOKEN_VARIABLE = "SECUREBENCH_TOKEN"  # noqa: S105 — the name of a variable
MIB = 1024 * 1024


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others can reach it then.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 takes a free one.")
@click.option("--token-file", type=click.Path(path_type=Path), help=f"Holds the token; else ${TOKEN_VARIABLE}.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="A name clients may reach the server by.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes that judge; default: the number of cores.")
@click.option("--queue", type=click.IntRange(min=1), default=1024, show_default=True, help="Candidates at once.")
@click.option(
    "--max-batch", type=click.IntRange(min=1), default=256, show_default=True, help="Candidates of a request."
)
@click.option("--max-body", type=click.IntRange(min=1), default=16, show_default=True, help="MiB of a request.")
@click.option("--connections", type=click.IntRange(min=1), default=256, show_default=True, help="Open at once.")
@click.option("--timeout", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds of a request.")
@click.option(
    "--grace", type=click.FloatRange(min=0), default=30.0, show_default=True, help="Seconds for what runs at the end."
)
@click.option("--details", is_flag=True, help="Answers also say what records say: messages, counts, checkers' output.")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="A tester YAML, for its verification policy, sandbox and judge.",
)
@click.option("--env-file", type=click.Path(path_type=Path), help="Read variables, such as a judge's key, from a file.")
@click.option("--unsafe", is_flag=True, help="UNSAFE: judge without the audit of the walls; every verdict says so.")
@click.option("--json", "as_json", is_flag=True, help="Print where it listens as JSON, when it is ready.")
def command(
    pack: Path,
    host: str,
    port: int,
    token_file: Path | None,
    names: tuple[str, ...],
    workers: int | None,
    queue: int,
    max_batch: int,
    max_body: int,
    connections: int,
    timeout: float,
    grace: float,
    details: bool,
    config_path: Path | None,
    env_file: Path | None,
    unsafe: bool,
    as_json: bool,
) -> int:
    """Judge candidates for the tasks of PACK that come over HTTP, until stopped.

    Every request needs the token: from --token-file, or the variable SECUREBENCH_TOKEN, or made now and shown once.
    Endpoints: POST /v1/grade, POST /v1/grade/batch, GET /v1/tasks, /healthz, /readyz, /metrics, /openapi.json."""
    import anyio

    from securebench.benchmark_pack import find_pack, load_benchmark_pack
    from securebench.cli._exec_report import warn_unaudited
    from securebench.cli._text import visible
    from securebench.errors import ConfigError
    from securebench.grading import Grader
    from securebench.serving.access import Gate
    from securebench.serving.limits import ServeLimits
    from securebench.serving.server import Server, listen
    from securebench.serving.service import Service
    from securebench.tester_config import load_env_file, load_tester_config

    if queue < max_batch:
        raise ConfigError(f"--queue {queue} is less than --max-batch {max_batch}: no batch of that size would be taken")
    env = dict(os.environ) | (load_env_file(env_file) if env_file else {})
    config = None if config_path is None else load_tester_config(config_path, env=env)
    token, made = _token(token_file)
    loaded = load_benchmark_pack(*find_pack(pack))
    limits = ServeLimits(
        connections=connections,
        body_bytes=max_body * MIB,
        bodies_bytes=max(4 * max_body, 64) * MIB,
        batch=max_batch,
        queue=queue,
        request_seconds=timeout,
        grace_seconds=grace,
    )
    if unsafe:
        warn_unaudited()
    _warn_of_reach(host)

    def tell(text: str) -> None:
        click.echo(visible(text), err=True)

    def ready(listener: socket.socket) -> None:
        url = _url(listener)
        if made:
            tell(f"token, shown only now: {token}")
        tell(f"ready: {len(loaded.entries)} tasks of {loaded.manifest.id} at {url}; Ctrl-C stops")
        if as_json:
            click.echo(json.dumps({"url": url, "benchmark": loaded.manifest.id, "tasks": len(loaded.entries)}))

    async def main() -> None:
        listener = listen(host, port)
        with listener:
            service = Service(loaded, limits, tell, details=details)
            grader = Grader(loaded, processes=workers, config=config, unsafe=unsafe)
            await Server(service, Gate(token, names), listener).run(grader, lambda: ready(listener))

    anyio.run(main)
    tell("stopped")
    return 0


def _token(file: Path | None) -> tuple[str, bool]:
    """The token, and whether it was made now. Raises ConfigError."""
    import secrets

    from securebench.errors import ConfigError, os_reason
    from securebench.serving.access import LEAST_TOKEN

    given = os.environ.pop(TOKEN_VARIABLE, None)  # no process of ours inherits it
    where = f"${TOKEN_VARIABLE}"
    if file is not None:
        where = str(file)
        try:
            mode = file.stat().st_mode
            given = file.read_text("utf-8", "replace").strip()
        except OSError as error:
            raise ConfigError(f"{file}: {os_reason(error)}") from None
        if mode & 0o077:
            raise ConfigError(f"{file}: others can read the token; chmod 600 {file}")
    if given is None:
        return secrets.token_urlsafe(32), True
    if len(given) < LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        raise ConfigError(f"{where}: a token has {LEAST_TOKEN} or more printable characters without spaces")
    return given, False


def _warn_of_reach(host: str) -> None:
    try:
        alone = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return  # told when it is listened on
    if not alone:
        click.echo(
            f"warning: listening on {host}: every machine that reaches it and has the token can have code judged here. "
            "The connection is not encrypted: over a network you do not trust, use a tunnel or a proxy with TLS.",
            err=True,
        )


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
