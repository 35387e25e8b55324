"""Progress on standard error: a live display on a terminal, plain lines elsewhere, JSON lines for machines."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from securebench.cli._agent_lines import AgentLines
from securebench.cli._text import one_line, visible
from securebench.progress import Event, Progress, ProgressEvent, silent


@contextmanager
def open_display(style: str, show_agent_output: bool, show_commands: bool = False) -> Iterator[Progress]:
    """The listener for one run. `auto` is live on a terminal and plain otherwise."""
    if style == "auto":
        style = "live" if sys.stderr is not None and sys.stderr.isatty() else "plain"
    if sys.stderr is None:
        style = "quiet"
    if style == "live":
        with _live(show_agent_output, show_commands) as listener:
            yield listener
    else:
        listeners: dict[str, Progress] = {"json": _json_lines, "plain": _Plain(show_agent_output, show_commands)}
        yield listeners.get(style, silent)


def _json_lines(event: ProgressEvent) -> None:
    click.echo(json.dumps(event.as_json()), err=True)


class _Plain:
    """One line per finished task, readable in a log."""

    def __init__(self, show_agent_output: bool, show_commands: bool) -> None:
        self.show_commands = show_commands
        self.agents: Progress = AgentLines(_to_stderr) if show_agent_output else silent
        self.counts = _Counts()

    def __call__(self, event: ProgressEvent) -> None:
        self.counts.see(event)
        self.agents(event)
        text = self._line(event)
        if text:
            _to_stderr(text)

    def _line(self, event: ProgressEvent) -> str | None:
        data = event.data
        if event.event is Event.RUN_START:
            return f"run {data['run_id']}: {data['planned']} attempts, {data['done_before']} done before"
        if event.event is Event.RUN_NOTICE:
            return f"note: {visible(str(data['message']))}"
        if event.event is Event.TASK_DONE:
            reason = f" ({data['failure_reason']})" if data.get("failure_reason") else ""
            done = f"[{self.counts.done}/{self.counts.planned}]"
            return f"{done} {event.task_id} #{event.attempt}: {data['status']}{reason} {data['seconds']:.2f} s"
        if event.event is Event.SANDBOX_COMMAND and self.show_commands:
            return command_line(event)
        return None


def _to_stderr(text: str) -> None:
    click.echo(text, err=True)


def command_line(event: ProgressEvent) -> str:
    """A command as a person would type it, on one line."""
    return f"{event.task_id} #{event.attempt} $ {one_line(shlex.join(event.data['argv']), 200)}"


class _Counts:
    """The numbers every display shows."""

    def __init__(self) -> None:
        self.planned = 0
        self.done = 0
        self.before = 0
        self.by_status: dict[str, int] = {}
        self.running: dict[tuple[str, int], float] = {}
        self.started = time.monotonic()

    def see(self, event: ProgressEvent) -> None:
        data: Any = event.data
        key = (event.task_id or "", event.attempt or 0)
        if event.event is Event.RUN_START:
            self.planned, self.before = data["planned"], data["done_before"]
            self.done = self.before
        elif event.event is Event.TASK_START:
            self.running[key] = time.monotonic()
        elif event.event is Event.TASK_DONE:
            self.running.pop(key, None)
            self.done += 1
            self.by_status[data["status"]] = self.by_status.get(data["status"], 0) + 1

    def eta(self) -> str:
        finished = self.done - self.before
        if not finished or self.done >= self.planned:
            return "–"
        seconds = (time.monotonic() - self.started) / finished * (self.planned - self.done)
        return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@contextmanager
def _live(show_agent_output: bool, show_commands: bool) -> Iterator[Progress]:
    from rich.console import Console, Group, RenderableType
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    counts = _Counts()
    console = Console(stderr=True, highlight=False)

    def render() -> RenderableType:
        line = Table.grid(padding=(0, 1))
        shown = [("passed", "green"), ("failed", "red"), ("pending", "dim"), ("error", "yellow")]
        states = [Text(f"{name} {counts.by_status[name]}", style) for name, style in shown if name in counts.by_status]
        bar = ProgressBar(total=max(counts.planned, 1), completed=counts.done, width=30)
        line.add_row(bar, f"{counts.done}/{counts.planned}", *states, Text(f"ETA {counts.eta()}", "dim"))
        now = time.monotonic()
        room = max(1, min(8, console.height - 4))
        current = [
            Text(f"  {one_line(task, 60)} #{attempt}  {now - since:.0f} s", "dim")
            for (task, attempt), since in list(counts.running.items())[:room]
        ]
        hidden = len(counts.running) - len(current)
        return Group(line, *current, *([Text(f"  … and {hidden} more", "dim")] if hidden > 0 else []))

    with Live(get_renderable=render, console=console, refresh_per_second=8, transient=True) as live:
        show_agents = AgentLines(lambda text: live.console.print(Text(text, "dim"))) if show_agent_output else silent

        def listener(event: ProgressEvent) -> None:
            counts.see(event)
            show_agents(event)
            if event.event is Event.RUN_NOTICE:
                live.console.print(Text(f"note: {visible(str(event.data['message']))}", "dim"))
            elif event.event is Event.SANDBOX_COMMAND and show_commands:
                live.console.print(Text(command_line(event), "dim"))

        yield listener
