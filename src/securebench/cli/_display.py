"""Progress on standard error: a live display on a terminal, plain lines elsewhere, JSON lines for machines."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from securebench.cli._agent_lines import AgentLines
from securebench.cli._text import attempt_name, one_line, visible
from securebench.progress import Event, Progress, ProgressEvent, silent
from securebench.run_state import RunState


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
    """One line per finished attempt, readable in a log."""

    def __init__(self, show_agent_output: bool, show_commands: bool) -> None:
        self.show_commands = show_commands
        self.agents: Progress = AgentLines(_to_stderr) if show_agent_output else silent
        self.counts = RunState()

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
            why = f": {one_line(str(data.get('message', '')), 200)}" if data["status"] == "error" else ""
            return f"{done} {event.task_id} #{event.attempt}: {data['status']}{reason} {data['seconds']:.2f} s{why}"
        if event.event is Event.SANDBOX_COMMAND and self.show_commands:
            return command_line(event)
        return None


def _to_stderr(text: str) -> None:
    click.echo(text, err=True)


def command_line(event: ProgressEvent) -> str:
    """A command as a person would type it, on one line."""
    return f"{attempt_name(event.task_id, event.attempt)} $ {one_line(shlex.join(event.data['argv']), 200)}"


@contextmanager
def _live(show_agent_output: bool, show_commands: bool) -> Iterator[Progress]:
    from rich.console import Console

    from securebench.cli._live import live, note

    state = RunState()
    with live(state, Console(stderr=True, highlight=False)) as shown:
        show_agents = AgentLines(lambda text: note(shown, text)) if show_agent_output else silent

        def listener(event: ProgressEvent) -> None:
            state.see(event)
            show_agents(event)
            if event.event is Event.RUN_NOTICE:
                note(shown, f"note: {visible(str(event.data['message']))}")
            elif event.event is Event.SANDBOX_COMMAND and show_commands:
                note(shown, command_line(event))

        yield listener
