"""Markdown in which no stranger's text means anything: no link, image, mention, tag, table or code of theirs.

What could be structure where it stands is written as a character reference, which never is: marks of HTML, tables,
code, links and formulas anywhere; `_`, `:`, `/` and `.` only where emphasis or an address could begin; what makes lists
and headings at the beginning. A name stands in `<code>`, where no code host looks for mentions or issues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from securebench._text import one_line

_LONGEST = 300
_ACTIVE = re.compile(
    r"""[&<>|`*\[\]~\\@{}]|\$(?! )"""
    r"""|(?<![^\W_])_|_(?![^\W_])"""  # within a word it is a letter
    r"""|(?<!sha256):(?=[^\s\d])|(?<!\d):(?=\d)|(?<=/)/|(?<=www)\.|\#(?=\w)"""  # addresses, emoji, issues
    r"""|^[-+#=:]|^\d(?=\d{0,8}[.)](?:\s|$))""",  # headings and lists
    re.IGNORECASE,
)


def name(text: str, longest: int = _LONGEST) -> str:
    """A stranger's text on one line, as code."""
    shown = one_line(text, longest) or " "
    return f"<code>{_inert(shown)}</code>"


def plain(text: str, longest: int = 2000) -> str:
    """A sentence that may hold a stranger's words: the same, not set as code."""
    return _inert(one_line(text, longest))


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


def _inert(text: str) -> str:
    return _ACTIVE.sub(lambda found: f"&#{ord(found[0])};", text)
