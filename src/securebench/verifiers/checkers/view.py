"""The captured workspace as a checker sees it: readable bytes, and nothing that executes where the checker is.

- A script whose interpreter is one that forwards keeps its permission to be executed: executing it reaches the
  interpreter's stand-in, which has the worker do it.
- A native program is replaced by a stub that forwards; its true bytes lie in the other copy, at
  `SECUREBENCH_WORKSPACE`, where nothing is executable.
- Everything else loses the permission, and is listed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from securebench.candidates.tree import EXECUTABLE, PLAIN, EntryKind, Tree, TreeEntry

STUB = b"#!/securebench/tools/forward\n"
_ELF = b"\x7fELF"
_HEAD = 256


@dataclass(frozen=True, slots=True)
class CheckerView:
    """`live` is mounted where the task has its working directory, `data` at SECUREBENCH_WORKSPACE."""

    live: Tree
    data: Tree
    blunted: tuple[str, ...]  # executable for the candidate, executable nowhere now


def checker_view(
    tree: Tree, head: Callable[[str], bytes], put: Callable[[bytes], str], forwarding: Collection[str]
) -> CheckerView:
    """`head` gives the first bytes of a content, `put` stores one, `forwarding` are names of interpreters that have a
    stand-in where the checker runs."""
    live, data, blunted = [], [], []
    stub: TreeEntry | None = None
    for entry in tree.entries:
        if entry.kind is not EntryKind.FILE or entry.mode != EXECUTABLE:
            live.append(entry)
            data.append(entry)
            continue
        plain = entry._replace(mode=PLAIN)
        data.append(plain)
        first = head(entry.digest)[:_HEAD]
        if first.startswith(_ELF):
            stub = stub or TreeEntry.file("stub", put(STUB), len(STUB), executable=True)
            live.append(stub._replace(path=entry.path))
        elif interpreter(first) in forwarding:
            live.append(entry)
        else:
            live.append(plain)
            blunted.append(entry.path)
    return CheckerView(Tree(tuple(live)), Tree(tuple(data)), tuple(blunted))


def interpreter(first: bytes) -> str | None:
    """The name of the program that a script asks for, without version: `#!/usr/bin/env python3.11` is `python3`."""
    if not first.startswith(b"#!"):
        return None
    words = first[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    if words and PurePosixPath(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    elif words and not words[0].startswith(("/usr/bin/", "/bin/", "/usr/local/bin/")):
        return None
    if not words:
        return None
    name = PurePosixPath(words[0]).name
    return "python3" if name in {"python", "python3"} or name.startswith("python3.") else name
