"""The hunks of a unified diff between two texts."""

from __future__ import annotations

from collections.abc import Sequence

from securebench.candidates.line_diff import Effort, Range, changed_ranges

CONTEXT = 3
_NO_NEWLINE = "\n\\ No newline at end of file\n"


def split_lines(text: str) -> list[str]:
    """Lines with their line feed, which alone ends a line; the last may have none."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def unified_hunks(old: str, new: str, effort: Effort | None = None) -> str:
    """The hunks that turn one text into the other; empty when they are equal."""
    before, after = split_lines(old), split_lines(new)
    return "".join(_hunk(before, after, group) for group in _groups(changed_ranges(before, after, effort)))


def _groups(ranges: list[Range]) -> list[list[Range]]:
    """Ranges whose context would touch share a hunk."""
    groups: list[list[Range]] = []
    for item in ranges:
        if groups and item.old_start - groups[-1][-1].old_end <= 2 * CONTEXT:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _hunk(old: Sequence[str], new: Sequence[str], group: list[Range]) -> str:
    first, last = group[0], group[-1]
    above = min(CONTEXT, first.old_start)
    below = min(CONTEXT, len(old) - last.old_end)
    old_start, old_end = first.old_start - above, last.old_end + below
    new_start, new_end = first.new_start - above, last.new_end + below
    lines = [f"@@ -{_span(old_start, old_end)} +{_span(new_start, new_end)} @@\n"]
    place = old_start
    for item in group:
        lines += _marked(" ", old[place : item.old_start])
        lines += _marked("-", old[item.old_start : item.old_end])
        lines += _marked("+", new[item.new_start : item.new_end])
        place = item.old_end
    lines += _marked(" ", old[place:old_end])
    return "".join(lines)


def _span(start: int, end: int) -> str:
    """Counted from one; an empty span names the line before it."""
    return f"{start + 1 if end > start else start},{end - start}"


def _marked(mark: str, lines: Sequence[str]) -> list[str]:
    return [mark + (line if line.endswith("\n") else line + _NO_NEWLINE) for line in lines]
