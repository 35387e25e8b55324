"""Blocked operations, told to whoever started us: one JSON line each, at most `REPORT_LINES`."""

from __future__ import annotations

from itertools import count

from .bake import bake
from .rules import REPORT_LINES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WIDTH = 500  # characters of one value


def quote(text: str) -> str:
    """`text` as a JSON string, in ASCII, without the json package."""
    width: Any = "@width"
    order: Any = "@ord"
    out = '"'
    for char in text[:width]:
        if char in '"\\':
            out += "\\" + char
        elif " " <= char <= "~":
            out += char
        else:
            number = order(char)
            if number > 0xFFFF:
                number -= 0x10000
                out += f"\\u{0xD800 + (number >> 10):04x}"
                number = 0xDC00 + (number & 0x3FF)
            out += f"\\u{number:04x}"
    return out + '"'


def tell(item: str, operation: str, message: str, file: str, line: int) -> None:
    """Write one line; a descriptor the program has closed or broken loses it, and nothing else."""
    write: Any = "@write"
    quote: Any = "@quote"
    turn: Any = "@turn"
    most: Any = "@most"
    broken: Any = "@broken"
    report: Any = "@report"
    trace: Any = "@trace"
    if turn() >= most:
        return
    fields = '"item": ' + quote(item) + ', "operation": ' + quote(operation) + ', "message": ' + quote(message)
    text = "{" + fields + ', "file": ' + quote(file) + f', "line": {line}' + "}\n"
    try:
        if report >= 0:
            write(report, text.encode("ascii"))
        if trace:
            write(2, f"guard: blocked {operation} at {file}:{line}\n".encode("utf-8", "replace"))
    except broken:
        pass


def make_tell(report: int, *, trace: bool) -> Any:
    """The telling function for one descriptor (-1 for none)."""
    import os

    quoter = bake(quote, width=_WIDTH, ord=ord)
    return bake(
        tell, write=os.write, quote=quoter, turn=count().__next__, most=REPORT_LINES, broken=(OSError, ValueError),
        report=report, trace=trace,
    )  # fmt: skip


def first_line(installed: list[str]) -> bytes:
    """What the report starts with."""
    return ('{"installed": [' + ", ".join(f'"{name}"' for name in installed) + "]}\n").encode("ascii")
