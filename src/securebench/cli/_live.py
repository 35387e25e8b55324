"""The live display: one line of numbers and the attempts that run longest, never more rows than the terminal has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from securebench.cli._summary import amount, duration
from securebench.cli._text import one_line
from securebench.run_state import Running, RunState

MOST_ROWS = 12
_STATUSES = (("passed", "green"), ("failed", "red"), ("pending", "dim"), ("error", "yellow"))
_PHASES = ("producing", "waiting", "verifying", "recording")


def render(state: RunState, width: int, height: int) -> RenderableType:
    """At most `height - 2` rows of at most `width` cells, so that nothing scrolls and nothing is drawn twice."""
    rows: list[RenderableType] = [_numbers(state, width)]
    room = min(MOST_ROWS, height - 2 - len(rows) - 1)
    if height > 4 and state.running:
        rows.append(Text(_under_way(state), "dim", no_wrap=True, overflow="ellipsis"))
    if room > 0:
        rows += [_attempt(key, one, state, width) for key, one in state.longest(room)]
    return Group(*rows)


def _numbers(state: RunState, width: int) -> RenderableType:
    line = Table.grid(padding=(0, 1))
    for _ in range(2):
        line.add_column(no_wrap=True)
    line.add_column(no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(total=max(state.planned, 1), completed=state.done, width=max(4, min(30, width // 4)))
    said = Text(no_wrap=True, overflow="ellipsis")
    for name, style in _STATUSES:
        if state.by_status[name]:
            said.append(f"{name} {state.by_status[name]} ", style)
    said.append(_pace(state), "dim")
    line.add_row(bar, f"{state.done}/{state.planned}", said)
    return line


def _pace(state: RunState) -> str:
    parts = []
    rate, left = state.rate(), state.left()
    if rate is not None:
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
    parts.append(f"ETA {'–' if left is None else duration(left)}")
    if state.tokens:
        parts.append(f"{amount(state.tokens)} tokens")
    if state.cost is not None:
        parts.append(f"{state.cost:.2f} USD")
    return " · ".join(parts)


def _under_way(state: RunState) -> str:
    phases = state.phases()
    parts = [f"{name} {phases[name]}" for name in _PHASES if phases[name]]
    return f"{len(state.running)} under way: {', '.join(parts)}"


def _attempt(key: tuple[str, int], one: Running, state: RunState, width: int) -> Text:
    tail = f" #{key[1]}  {one.phase}  {duration(max(0.0, state.now() - one.since))}"
    name = one_line(key[0], max(8, min(60, width - len(tail) - 3)))
    return Text(f"  {name}{tail}", "dim", no_wrap=True, overflow="ellipsis")


@contextmanager
def live(state: RunState, console: Console) -> Iterator[Live]:
    """Redrawn a few times a second, whatever the number of events: events only change the state."""

    def frame() -> RenderableType:
        return render(state, console.width, console.height)

    with Live(get_renderable=frame, console=console, refresh_per_second=4, transient=True) as shown:
        yield shown


def note(shown: Live, text: str) -> None:
    """A line above the display that stays."""
    shown.console.print(Text(text, "dim"))
