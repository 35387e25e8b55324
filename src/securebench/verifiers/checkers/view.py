"""The captured workspace as a checker sees it: readable bytes, and nothing that executes where the checker is.

- A script whose interpreter is one that forwards keeps its permission to be executed: executing it reaches the
  interpreter's stand-in, which has the worker do it.
- A native program is replaced by a stub that forwards; its true bytes lie in the other copy, at
  `SECUREBENCH_WORKSPACE`, where nothing can be executed.
- Everything else loses the permission, and is listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from securebench.candidates.tree import EXECUTABLE, PLAIN, EntryKind, Tree, TreeEntry

STUB = b"#!/securebench/tools/forward\n"
_ELF = b"\x7fELF"
_HEAD = 256


@dataclass(frozen=True, slots=True)
class CheckerView:
    """`live` is mounted where the task has its working directory, `data` at SECUREBENCH_WORKSPACE."""

    live: Tree
    data: Tree | None  # None where no file needs a stub: one copy is enough for both
    blunted: tuple[str, ...]  # executable for the candidate, executable nowhere now


def checker_view(
    tree: Tree, head: Callable[[str], bytes], put: Callable[[bytes], str], forwarding: Collection[str]
) -> CheckerView:
    """`head` gives the first bytes of a content, `put` stores one, `forwarding` are names of interpreters that have a
    stand-in where the checker runs."""
    live, data, blunted = [], [], []
    digests: dict[str, bytes] = {}
    stub: TreeEntry | None = None
    for entry in tree.entries:
        if entry.kind is not EntryKind.FILE or entry.mode != EXECUTABLE:
            live.append(entry)
            data.append(entry)
            continue
        plain = entry._replace(mode=PLAIN)
        data.append(plain)
        if entry.digest not in digests:
            digests[entry.digest] = head(entry.digest)[:_HEAD]
        first = digests[entry.digest]
        if first.startswith(_ELF):
            stub = stub or TreeEntry.file("stub", put(STUB), len(STUB), executable=True)
            live.append(stub._replace(path=entry.path))
        elif interpreter(first) in forwarding:
            live.append(entry)
        else:
            live.append(plain)
            blunted.append(entry.path)
    return CheckerView(Tree(tuple(live)), Tree(tuple(data)) if stub else None, tuple(blunted))


_PLAIN = re.compile(
    rb"#! ?(?:/usr/bin/env +|/usr/bin/|/bin/|/usr/local/bin/)([A-Za-z0-9.+_-]+)(?: +(-[A-Za-z]{1,8}))? *(?:\n|$)"
)


def interpreter(first: bytes) -> str | None:
    """The name of the program that a script asks for, without version: `#!/usr/bin/env python3.11` is `python3`.

    Only the two plain forms count: `env` with options or assignments could switch off what the stand-in rests on, and
    another path, or a name that ends differently (CRLF), is another program. Nor do options count with which the name
    of the script is the program, or another file is: the candidate chose that name."""
    found = _PLAIN.match(first)
    if found is None or found[1] == b"env" or (b"env " in first[:20] and found[2]):
        return None
    name = found[1].decode()
    name = "python3" if name in {"python", "python3"} or name.startswith("python3.") else name
    return name if _runs_its_file(name, (found[2] or b"").decode()) else None


_FILTERS = frozenset({"awk", "gawk", "mawk", "nawk", "original-awk"})
_HARMLESS = {"python3": "BbdEIOqsSuvx", "perl": "wWtTlnp"} | dict.fromkeys(
    ("bash", "sh", "dash"), "abefhklmnptuvxBCEHPT"
)


def _runs_its_file(name: str, option: str) -> bool:
    if name in _FILTERS:
        return option == "-f"
    return set(option[1:]) <= set(_HARMLESS.get(name, "fwln"))
