"""What is printed where there is a terminal, and where there is none."""

from __future__ import annotations

import re
import sys

import pytest
from rich.table import Table
from rich.text import Text

from securebench.cli._text import fits, print_table


def wide() -> Table:
    table = Table()
    for _ in range(6):
        table.add_column(overflow="fold")
    table.add_row(*(letter * 40 for letter in "abcdef"))
    return table


def test_a_file_gets_lines_as_long_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert fits(wide())
    print_table(wide())
    print_table(Text("word " * 100))
    printed = capsys.readouterr().out
    assert "f" * 40 in printed
    assert "word " * 99 in printed


def test_a_terminal_gets_what_it_has_room_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert not fits(wide())
    assert fits(Text("a word"))
    print_table(wide())
    printed = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert max(map(len, printed.splitlines())) == 100
