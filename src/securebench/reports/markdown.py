"""Markdown in which no stranger's text means anything: no link, image, mention, tag, table or code of theirs.

A name is written as `<code>` around character references: references are never structure, inside `<code>` no code host
looks for mentions or issues, and a table's cell cannot be broken from inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from securebench._text import one_line

_LONGEST = 300


def name(text: str, longest: int = _LONGEST) -> str:
    """A stranger's text on one line, as code."""
    shown = one_line(text, longest) or " "
    return f"<code>{''.join(map(_character, shown))}</code>"


def plain(text: str, longest: int = 2000) -> str:
    """A sentence that may hold a stranger's words: the same, not set as code."""
    return "".join(map(_character, one_line(text, longest)))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table. Cells are markdown already; a head that ends in `:` is aligned to the right."""
    titles = [head.removesuffix(":") for head in heads]
    marks = ["---:" if head.endswith(":") else "---" for head in heads]
    return [_row(titles), _row(marks), *map(_row, rows)]


def details(title: str, lines: Iterable[str]) -> list[str]:
    """Lines that are shown when asked for. The title is ours."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _character(char: str) -> str:
    harmless = char.isalnum() or char in " -,"
    return char if harmless or ord(char) > 0x7F else f"&#{ord(char)};"
