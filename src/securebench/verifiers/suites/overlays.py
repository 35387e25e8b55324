"""Trees laid over trees: what comes last is there, whatever stood in its way."""

from __future__ import annotations

from collections.abc import Iterable

from securebench.candidates.tree import Delta, EntryKind, Tree, TreeEntry


def laid_over(tree: Tree, put: Iterable[TreeEntry], gone: Iterable[str] = ()) -> Tree:
    """`tree` without the paths in `gone`, then with every entry of `put` in its place. Directories that lead there are
    made; a file or link in the way of one goes, and so does what lies beneath a place that becomes a file."""
    entries = {entry.path: entry for entry in tree.entries}
    for path in gone:
        _remove(entries, path)
    for entry in put:
        for parent in _parents(entry.path):
            if entries.get(parent) != (directory := TreeEntry.directory(parent)):
                _remove(entries, parent)
                entries[parent] = directory
        if entry.kind is not EntryKind.DIRECTORY:
            _remove(entries, entry.path)
        entries[entry.path] = entry
    return Tree.of(entries.values())


def with_delta(tree: Tree, delta: Delta) -> Tree:
    """`tree` with what the delta says of its paths, whatever the tree has there."""
    put = [*delta.added, *(change.after for change in delta.changed)]
    return laid_over(tree, sorted(put, key=lambda entry: entry.path), [entry.path for entry in delta.deleted])


def beneath(tree: Tree, place: str) -> tuple[TreeEntry, ...]:
    """The entries of a tree as they are called where it lies at `place`."""
    return tuple(entry._replace(path=f"{place}/{entry.path}") for entry in tree.entries)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _remove(entries: dict[str, TreeEntry], path: str) -> None:
    entries.pop(path, None)
    for other in [other for other in entries if other.startswith(path + "/")]:
        del entries[other]
