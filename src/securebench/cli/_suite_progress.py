"""How far an audit has come, on standard error: one line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from securebench.cli._text import one_line

Tell = Callable[[str, int, int, int], None]
"""Called with what is being done, how much of it is, how much there is, and how many did not hold."""
_SHARES = 10


@contextmanager
def progress(quiet: bool) -> Iterator[Tell]:
    if quiet or sys.stderr is None:
        yield lambda *_: None
    elif sys.stderr.isatty():
        with _live() as tell:
            yield tell
    else:
        yield _Plain()


class _Plain:
    """A line when another tenth is done."""

    def __init__(self) -> None:
        self._said = (0, 0)

    def __call__(self, what: str, done: int, total: int, failed: int) -> None:
        share = done * _SHARES // total if done and total else -1
        if (total, share) != self._said or not done:
            self._said = (total, share)
            click.echo(f"{f'{done} of {total}: ' if done else ''}{one_line(what, 120)}{_failed(failed)}", err=True)


@contextmanager
def _live() -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True, refresh_per_second=8) as shown:
        task = shown.add_task("", total=1)

        def tell(what: str, done: int, total: int, failed: int) -> None:
            text = one_line(f"{what}{_failed(failed)}", max(20, console.width - 48))
            shown.update(task, completed=done, total=max(total, 1), description=text)

        yield tell


def _failed(number: int) -> str:
    return f", {number} did not hold" if number else ""
