"""CSV that a spreadsheet takes for data: no text in it is a formula, and none breaks out of its cell, also where cells
end with a semicolon, as in many countries, and quotes of ours end nothing."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from securebench import _json
from securebench._text import visible

_FORMULAS = frozenset("=+-@|%\t\r\n＝＋－＠")
"""What spreadsheets, also of other scripts, take for the beginning of a formula or a command."""
_NEXT_CELL = re.compile(rf"([;,][ \"']*)(?=[{re.escape(''.join(sorted(_FORMULAS)))}])")


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Lines with their ends, the head first. Texts are quoted, numbers are not."""
    yield _line(columns)
    for row in rows:
        yield _line(row)


def _line(values: Sequence[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerow([cell(value) for value in values])
    return buffer.getvalue()


def cell(value: Any) -> str | int | float:
    """A value as a cell holds it: numbers as they are, anything else as text that begins no formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    text = visible(_json.dumps(value) if isinstance(value, list | dict) else str(value), keep="")
    text = _NEXT_CELL.sub(r"\1'", text)
    return f"'{text}" if text.lstrip(" \"'")[:1] in _FORMULAS and text.strip() else text
