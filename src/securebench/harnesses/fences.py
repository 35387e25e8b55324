"""Fenced blocks in a reply, read as CommonMark has them. Pure.

A fence is a line of three or more backticks or tildes after at most three spaces. It ends with a line of the same
character, at least as long, with nothing behind it; so a block may hold shorter fences, fences of the other character,
and fences that are indented deeper, as in a docstring. The indentation of the opening fence is taken off the lines of
the block, and nothing else: each keeps its own ending, which a patch to a file with CRLF needs. One rule is stricter
than CommonMark: a fence that is never closed is an error, because it is what is left of a reply that was cut off."""

from __future__ import annotations

import re

_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_OPEN = re.compile(r"( {0,3})(?:(`{3,})([^`]*)|(~{3,})(.*))")
_CLOSE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")


class UnclosedFence(ValueError):
    """A fence that nothing closes."""

    def __init__(self, line: int) -> None:
        super().__init__(f"the fence in line {line} is never closed")


def fenced_blocks(text: str) -> list[str]:
    """What stands in each block, every line of it with its ending. Raises UnclosedFence."""
    blocks: list[str] = []
    block: list[str] = []
    fence, indent, opened = "", 0, 0
    for number, whole in enumerate(_LINE.finditer(text), 1):
        line, end = whole.groups()
        if not fence:
            if match := _OPEN.fullmatch(line):
                indent, fence, opened, block = len(match[1]), match[2] or match[4], number, []
        elif (match := _CLOSE.fullmatch(line)) and match[1][0] == fence[0] and len(match[1]) >= len(fence):
            blocks.append("".join(block))
            fence = ""
        else:
            block.append(line[min(indent, len(line) - len(line.lstrip(" "))) :] + end)
    if fence:
        raise UnclosedFence(opened)
    return blocks
