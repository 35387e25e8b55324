"""A delta as a git-style patch for people and tools. The delta is the candidate; this is only how it looks.

`git apply` of a rendering to the pristine tree gives the captured tree: modes, links, new and deleted files, texts
without a last line feed, and bytes that are not text. What it cannot say: directories without files. What it leaves
out, because it would be too long, is named."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from securebench.candidates.hunks import unified_hunks
from securebench.candidates.line_diff import Effort
from securebench.candidates.tree import EXECUTABLE, Delta, EntryKind, TreeEntry

MAX_FILE = 16 * 2**20
MAX_TEXT = 2 * 2**20
MAX_PATCH = 64 * 2**20
MAX_READ = 256 * 2**20  # bytes of contents that are looked at for one patch, shown in the end or not
MAX_WORK = 50_000_000  # steps of comparison for one patch
_NOBODY = "0" * 40

ReadBlob = Callable[[str, int], bytes]
"""`CandidateStore.read`: a content by digest, of at most so many bytes."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A patch, and the paths that it does not show because their contents are too large."""

    text: str
    omitted: tuple[str, ...] = ()


def render(delta: Delta, read: ReadBlob, limit: int = MAX_PATCH) -> Rendered:
    """The patch of a delta, of at most about `limit` characters, made with a bounded amount of work."""
    parts: list[str] = []
    omitted: list[str] = []
    size, looked_at = 0, 0
    effort = Effort(MAX_WORK)
    for path, before, after in _sections(delta):
        sizes = [entry.size for entry in (before, after) if entry is not None]
        if max(sizes) > MAX_FILE or looked_at + sum(sizes) > MAX_READ or size >= limit:
            omitted.append(path)
            continue
        looked_at += sum(sizes)
        text = _section(path, before, after, read, effort)
        if size + len(text) > limit:
            omitted.append(path)
            continue
        size += len(text)
        parts.append(text)
    return Rendered("".join(parts), tuple(dict.fromkeys(omitted)))


def _sections(delta: Delta) -> Iterator[tuple[str, TreeEntry | None, TreeEntry | None]]:
    """What becomes a section: no directories; another kind is a deletion and an addition. Deletions come first, so
    that nothing is in the way of what is added."""
    pairs: list[tuple[TreeEntry | None, TreeEntry | None]] = [(entry, None) for entry in delta.deleted]
    pairs += [(None, entry) for entry in delta.added]
    for change in delta.changed:
        same = change.before.kind is change.after.kind
        pairs += [(change.before, change.after)] if same else [(change.before, None), (None, change.after)]
    shown = []
    for before, after in pairs:
        entry = after or before
        if entry is not None and entry.kind is not EntryKind.DIRECTORY:
            shown.append((after is not None, entry.path, before, after))
    for _, path, before, after in sorted(shown, key=lambda item: item[:2]):
        yield path, before, after


def _section(path: str, before: TreeEntry | None, after: TreeEntry | None, read: ReadBlob, effort: Effort) -> str:
    old_name, new_name = quoted(f"a/{path}"), quoted(f"b/{path}")
    lines = [f"diff --git {old_name} {new_name}\n"]
    if before is None and after is not None:
        lines.append(f"new file mode {_mode(after)}\n")
    elif after is None and before is not None:
        lines.append(f"deleted file mode {_mode(before)}\n")
    elif before is not None and after is not None and before.mode != after.mode:
        lines.append(f"old mode {_mode(before)}\nnew mode {_mode(after)}\n")
    old, new = _content(before, read), _content(after, read)
    if old == new:
        return "".join(lines)
    texts = _as_text(old), _as_text(new)
    if texts[0] is None or texts[1] is None:
        ids = _NOBODY if before is None else _git_id(old), _NOBODY if after is None else _git_id(new)
        lines.append(f"index {ids[0]}..{ids[1]}\nGIT binary patch\n{_literal(new)}\n")
    else:
        lines.append("--- /dev/null\n" if before is None else f"--- {old_name}\n")
        lines.append("+++ /dev/null\n" if after is None else f"+++ {new_name}\n")
        lines.append(unified_hunks(texts[0], texts[1], effort))
    return "".join(lines)


def _content(entry: TreeEntry | None, read: ReadBlob) -> bytes:
    if entry is None:
        return b""
    return (entry.target or "").encode() if entry.kind is EntryKind.LINK else read(entry.digest, MAX_FILE)


def _mode(entry: TreeEntry) -> str:
    if entry.kind is EntryKind.LINK:
        return "120000"
    return "100755" if entry.mode == EXECUTABLE else "100644"


def _as_text(data: bytes) -> str | None:
    """What can be shown line by line; None for anything else and for what is very long."""
    if len(data) > MAX_TEXT or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def quoted(name: str) -> str:
    """A name as git reads it in one way only: in quotes where it holds a blank, a quote or a backslash."""
    if '"' not in name and "\\" not in name and not any(char.isspace() for char in name):
        return name
    escaped = (_escaped(char) if char != " " else char for char in name)
    return f'"{"".join(escaped)}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return "".join(f"\\{byte:03o}" for byte in char.encode()) if char.isspace() else char


def _git_id(data: bytes) -> str:
    # What git calls a file; it proves nothing here.
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _literal(data: bytes) -> str:
    packed = zlib.compress(data)
    lines = [f"literal {len(data)}"]
    for start in range(0, len(packed), 52):
        piece = packed[start : start + 52]
        length = chr(ord("A") + len(piece) - 1) if len(piece) <= 26 else chr(ord("a") + len(piece) - 27)
        lines.append(length + base64.b85encode(piece, pad=True).decode())
    return "\n".join(lines) + "\n"
