"""Words for the terminal: text from strangers made safe to show, and our own name."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

from securebench._text import one_line, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["attempt_name", "fits", "one_line", "print_table", "program", "visible", "without_orders"]
_WIDEST = 100_000
_ORDERS = re.compile(r"^(?:\s|\x1b\[[\d;]*m)*:(?=:)|#(?=#(?:\[|\w+\[))", re.MULTILINE)


def attempt_name(task_id: str | None, attempt: int | None) -> str:
    """At the beginning of a line: a pack may call its task `::error::`, which gives an order to some CI services."""
    name = str(task_id)
    return f"{name if name[0].isalnum() else f'task {name}'} #{attempt}"


def program() -> str:
    """How the person called us, so that what we tell them to type works as it stands."""
    return "securebench" if shutil.which("securebench") or not sys.argv[0] else sys.argv[0]


def without_orders(text: str) -> str:
    """Lines that CI services read as text: a name such as `::error::` or `##vso[…]` is an order to some of them, at the
    beginning of a line or anywhere in it."""
    return _ORDERS.sub(lambda found: f"{found[0]} ", text)


def print_table(table: RenderableType) -> None:
    """On standard output, as wide as the terminal; where there is none, as wide as it is, so that nothing is folded."""
    from rich.console import Console

    console = Console(highlight=False)
    if not sys.stdout.isatty():
        console.width = max(console.width, _width(table))
    with console.capture() as drawn:
        console.print(table)
    console.file.write(without_orders(drawn.get()))


def fits(table: RenderableType) -> bool:
    """Whether standard output has room for all of it on its own lines."""
    from rich.console import Console

    return not sys.stdout.isatty() or _width(table) <= Console().width


def _width(table: RenderableType) -> int:
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    return Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
