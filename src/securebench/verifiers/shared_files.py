"""Files that are the same for many candidates: laid out once, mounted read-only by every sandbox that needs them.

Only what the pack or this package says goes here, never a byte of a candidate's. Equal keys mean equal content, so
whoever comes second finds what the first one had made; a sandbox with them can also be prepared ahead."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import CancelScope, to_thread

from securebench._removal import remove_tree
from securebench.verifiers.tree_room import staging

_MOST = 64  # directories that nobody uses now


class _Directory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.users = 0
        self.ready = False
        self.lock = anyio.Lock()


class SharedFiles:
    """Directories beneath a private one, whose owner removes it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._count = 0
        self._directories: OrderedDict[Hashable, _Directory] = OrderedDict()

    @asynccontextmanager
    async def borrow(self, key: Hashable, make: Callable[[Path], None]) -> AsyncIterator[Path]:
        """The directory of that key while the context lasts; `make` fills it where there is none yet, in a thread.

        Raises what `make` raises."""
        directory = self._of(key)
        directory.users += 1
        try:
            async with directory.lock:
                if not directory.ready:
                    await to_thread.run_sync(_make, directory.path, make)
                    directory.ready = True
            yield directory.path
        finally:
            directory.users -= 1
            with CancelScope(shield=True):
                await self._forget()

    def _of(self, key: Hashable) -> _Directory:
        if key not in self._directories:
            self._count += 1  # a name is never used again: something may still have the old one mounted
            self._directories[key] = _Directory(self._place / str(self._count))
        self._directories.move_to_end(key)
        return self._directories[key]

    async def _forget(self) -> None:
        """Remove what could not be made, and of what nobody uses the oldest."""
        unused = [key for key, directory in self._directories.items() if not directory.users]
        surplus = set(unused[: max(0, len(unused) - _MOST)])
        for key in unused:
            if key in surplus or not self._directories[key].ready:
                path = self._directories.pop(key).path
                await to_thread.run_sync(_remove, path)


@asynccontextmanager
async def shared_directory(
    shared: SharedFiles | None, key: Hashable, make: Callable[[Path], None]
) -> AsyncIterator[Path]:
    """`borrow`; where nothing is shared, a directory for this once."""
    if shared is not None:
        async with shared.borrow(key, make) as path:
            yield path
        return
    async with staging() as place:
        await to_thread.run_sync(_make, place / "files", make)
        yield place / "files"


def _make(path: Path, make: Callable[[Path], None]) -> None:
    path.parent.mkdir(mode=0o711, exist_ok=True)
    path.mkdir()
    try:
        make(path)
        path.chmod(0o755)
    except BaseException:
        remove_tree(path)  # whoever waits for it makes it anew
        raise


def _remove(path: Path) -> None:
    if path.exists():
        remove_tree(path)
