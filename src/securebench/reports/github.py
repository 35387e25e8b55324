"""Annotations for GitHub's runners: lines of standard output that the runner obeys, so a stranger's text is escaped to
one line, and stays one."""

from __future__ import annotations

from typing import Literal

from securebench._text import one_line

Level = Literal["error", "warning", "notice"]
_LONGEST = 2000


def annotation(level: Level, title: str, message: str) -> str:
    """`::error title=…::…`."""
    return f"::{level} title={_property(title)}::{_message(message)}"


def _message(text: str) -> str:
    shown = one_line(text, _LONGEST).replace("##", "# #")  # which older commands begin with, anywhere in a line
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
