"""The submitted modules, read before the program runs: what it writes later is never one of them."""

# pathlib costs milliseconds at start-up.
# ruff: noqa: PTH112, PTH113, PTH114, PTH123, PTH208

from __future__ import annotations

import os

_MOST = 64 * 1024 * 1024


def submitted_files(directory: str, names: list[str]) -> list[tuple[str, str, str | None, bytes]]:
    """The bytes of the submitted modules, read now: (name, path, directory of a package or None, source)."""
    found: list[tuple[str, str, str | None, bytes]] = []
    for name in names:
        base = directory + "/" + name
        if os.path.isdir(base):
            _walk(base, name, found)
        elif os.path.isfile(base + ".py"):
            found.append((name, base + ".py", None, _bytes(base + ".py")))
    return found


def _walk(base: str, name: str, found: list[tuple[str, str, str | None, bytes]]) -> None:
    init = base + "/__init__.py"
    found.append((name, init, base, _bytes(init) if os.path.isfile(init) else b""))
    for entry in sorted(os.listdir(base)):
        if entry.endswith(".py") and entry != "__init__.py" and entry[:-3].isidentifier():
            found.append((name + "." + entry[:-3], base + "/" + entry, None, _bytes(base + "/" + entry)))
        elif entry.isidentifier() and os.path.isdir(base + "/" + entry) and not os.path.islink(base + "/" + entry):
            _walk(base + "/" + entry, name + "." + entry, found)
    if sum(len(one[3]) for one in found) > _MOST:
        raise ValueError("the submitted modules are too large")


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
