"""A tree with what the gold patch fixed broken again."""

from __future__ import annotations

from securebench.candidates.tree import EntryKind, Tree, TreeEntry, delta_between
from securebench.verifiers.suites.overlays import laid_over
from securebench.verifiers.suites.repository_task import RepositoryTask
from securebench.verifiers.suites.sabotage import sabotaged

MAX_TAKEN_APART = 512 * 1024


def broken(task: RepositoryTask, tree: Tree) -> Tree:
    """`tree` with the functions that the gold patch touches made to raise, or, where that cannot be, with its files put
    back. Raises ValueError where the task has no gold patch."""
    if task.gold is None:
        raise ValueError("a task without a gold patch does not say what to break")
    put: list[TreeEntry] = []
    gone: list[str] = []
    for path in delta_between(task.pristine, task.gold).paths:
        before, after = task.pristine.get(path), task.gold.get(path)
        if path in task.protected or _is_directory(after or before):
            continue
        text = None
        if path.endswith(".py"):
            text = sabotaged(*(_source(task, version, path) for version in (task.pristine, task.gold, tree)))
        if text is not None:
            data = text.encode()
            put.append(TreeEntry.file(path, task.store.put(data), len(data)))
        elif before is not None:
            put.append(before)
        else:
            gone.append(path)
    return laid_over(tree, put, gone)


def _source(task: RepositoryTask, tree: Tree, path: str) -> str | None:
    """A file small enough to be taken apart here: the syntax tree of a line takes a hundred times its room."""
    entry = tree.get(path)
    return task.text(tree, path) if entry is not None and entry.size <= MAX_TAKEN_APART else None


def _is_directory(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.DIRECTORY
