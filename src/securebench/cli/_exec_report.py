"""What `securebench exec` shows: the program's output as it comes, its end in one line, or everything as JSON."""

from __future__ import annotations

import codecs
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath

import click

from securebench._fs import open_directory, write_new
from securebench._paths import relative_path
from securebench.audit.result import AuditResult
from securebench.cli._text import one_line, visible
from securebench.errors import ConfigError, os_reason
from securebench.execution.request import PythonLimits, PythonResult
from securebench.sandboxes.base import MIB, Outcome

_WIDTH = 72
_MANY = 100


class Passage:
    """Hands the program's output on as it comes. On a terminal, nothing of it can be an escape sequence."""

    def __init__(self) -> None:
        self._streams = {"stdout": sys.stdout, "stderr": sys.stderr}
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: decoder("replace") for name in self._streams}

    def __call__(self, name: str, data: bytes, *, final: bool = False) -> None:
        stream = self._streams[name]
        if stream is None:
            return
        if stream.isatty():
            stream.write(visible(self._decoders[name].decode(data, final)))
        else:
            stream.buffer.write(data)
        stream.flush()

    def finish(self) -> None:
        """Show what a cut-off character left behind."""
        for name in self._streams:
            self(name, b"", final=True)


def warn_unsafe() -> None:
    """On every use, where nobody can miss it."""
    _box(
        [
            "UNSAFE: ALL PROTECTION IS OFF",
            "No audit, no guard, no isolation. The program runs on this host as you,",
            "with your files, your network and your credentials.",
        ]
    )


def warn_unaudited() -> None:
    """For `run --unsafe`, on every use."""
    _box(
        [
            "UNSAFE: NOBODY LOOKED WHETHER THE SANDBOX HOLDS",
            "The audit of the walls is skipped. What runs may reach this host.",
            "Every record says `assurance: unsafe`.",
        ]
    )


def warn_network() -> None:
    _box(
        [
            "UNSAFE: THE PROGRAM HAS THIS HOST'S NETWORK",
            "It reaches whatever this host reaches, local services included,",
            "and can send away everything it was given.",
        ]
    )


def _box(lines: list[str]) -> None:
    rule = "!" * (_WIDTH + 6)
    text = [rule, *(f"!! {line:^{_WIDTH}} !!" for line in lines), rule]
    click.secho("\n".join(text), err=True, fg="red", bold=True)


def check_free(directory: Path, outputs: tuple[str, ...]) -> None:
    """Refuse, before anything runs, outputs that would replace something. Raises ConfigError."""
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"--output-dir {directory} is not a directory")
    for path in outputs:
        try:
            target = directory / relative_path(path)
        except ValueError as error:
            raise ConfigError(f"--output {path!a}: {error}") from None
        if os.path.lexists(target):
            raise ConfigError(f"{target} is there already; choose another --output-dir")


def keep(result: PythonResult, directory: Path) -> dict[str, str]:
    """Write the outputs; where each went. Raises ConfigError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with open_directory(directory) as root:
            for path, data in result.outputs.items():
                write_new(root, PurePosixPath(path), data, 0o644)
    except OSError as error:
        raise ConfigError(f"{directory} {os_reason(error).replace('read', 'written')}") from None
    return {path: str(directory / path) for path in result.outputs}


def print_json(result: PythonResult, kept: Mapping[str, str], audit: AuditResult | None) -> None:
    """Everything there is to say about a run, on standard output."""
    fields = {
        "outcome": result.outcome.value,
        "exit": result.exit_code,
        "signal": result.signal,
        "timed_out": result.timed_out,
        "oom": result.oom,
        "blocked": [asdict(blocked) for blocked in result.blocked],
        "cpu": result.cpu_seconds,
        "wall": result.wall_seconds,
        "peak_memory": result.peak_memory,
        "bytes_written": result.bytes_written,
        "stdout": result.stdout.data.decode("utf-8", "replace"),
        "stderr": result.stderr.data.decode("utf-8", "replace"),
        "truncated": result.stdout.truncated or result.stderr.truncated,
        "outputs": dict(kept),
        "refused": dict(result.refused),
        "isolation": result.isolation,
        "assurance": result.assurance,
        "guarantees": sorted(result.guarantees),
        "guard": list(result.installed),
        "audit": None if audit is None else audit.as_record(),
    }
    click.echo(json.dumps(fields, indent=2))


def print_end(result: PythonResult, limits: PythonLimits, *, trace: bool) -> None:
    """One line on standard error for whatever is not a plain success, and the blocked operations if wanted."""
    for blocked in result.blocked[:_MANY] if trace else ():
        where = f" at {blocked.place}" if blocked.place else ""
        click.echo(one_line(f"blocked: {blocked.message or blocked.operation}{where}", 300), err=True)
    if trace and len(result.blocked) > _MANY:
        click.echo(f"blocked: … and {len(result.blocked) - _MANY} more (--json has them all)", err=True)
    if not result.ok:
        click.echo(f"securebench: the program {_ending(result, limits)}{_hint(result, trace)}", err=True)
    for name, output in (("standard output", result.stdout), ("standard error", result.stderr)):
        if output.truncated:
            click.echo(f"securebench: {name} was cut off after {len(output.data)} bytes", err=True)
    for path, reason in result.refused.items():
        click.echo(f"securebench: output {visible(path)} was not taken: {visible(reason)}", err=True)


def _ending(result: PythonResult, limits: PythonLimits) -> str:
    words = {
        Outcome.TIMEOUT: f"was ended: its time was up ({limits.timeout:g} s; --timeout)",
        Outcome.CPU_LIMIT: f"was ended: it used up its processor time ({limits.cpu_seconds} s; --cpu)",
        Outcome.OUT_OF_MEMORY: f"ran out of memory ({limits.memory // MIB} MiB; --mem)",
        Outcome.OUTPUT_LIMIT: f"was ended: it printed more than {2 * limits.output // MIB} MiB",
    }
    if result.outcome in words:
        return words[result.outcome]
    if result.signal is not None:
        return f"crashed with signal {result.signal} ({_signal_name(result.signal)})"
    return f"exited with code {result.exit_code}"


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else "unnamed"


def _hint(result: PythonResult, trace: bool) -> str:
    count = len(result.blocked)
    if not count or trace:
        return ""
    return f"; {count} operation{'s were' if count > 1 else ' was'} blocked (--trace-blocked lists them)"
