"""The strict reader while somebody exchanges entries of the tree under it. Nobody can, in a run: the sandbox is stopped
first. That the reader would hold all the same is a wall of its own."""

from __future__ import annotations

import ctypes
import os
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from securebench import _fs
from securebench.audit.plays.tree import CANARY, PRIVATE, lay_outside
from securebench.audit.suite.attack import End, Ground, NotHere, Seen
from securebench.candidates import _openat2
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore

_EXCHANGE = 2
_NOW = -100  # AT_FDCWD
_CAPTURES = 30
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ReadDuringExchange:
    """`portable`: without the kernel's help."""

    portable: bool

    async def on(self, ground: Ground) -> Seen:
        if not hasattr(libc := ctypes.CDLL(None), "renameat2"):
            raise NotHere("this system cannot exchange two entries at once")
        if not self.portable and not _openat2.available():
            raise NotHere("this kernel has no openat2")
        outside = lay_outside(ground)
        tree = _racing_tree(ground.directory / "tree", outside)
        ended = threading.Event()
        exchanging = threading.Thread(target=_exchange, args=(libc, tree, ended))
        exchanging.start()
        try:
            return await to_thread.run_sync(self._read, tree, CandidateStore(ground.directory / "store"))
        finally:
            ended.set()
            exchanging.join()

    def _read(self, tree: Path, store: CandidateStore) -> Seen:
        until, captures, digests = time.monotonic() + _SECONDS, 0, set[str]()
        while time.monotonic() < until and (captures < _CAPTURES or len(digests) < 2):
            with _fs.open_directory(tree) as root:
                digests.add(read_tree(root, store, portable=self.portable).tree.digest)
            captures += 1
        if any(CANARY in path.read_bytes() for path in store.directory.rglob("*") if path.is_file()):
            return Seen(End.REACHED, "the reader was led outside")
        if len(digests) < 2:
            return Seen(End.FAULT, "no exchange was ever seen, so nothing is shown")
        return Seen(End.MISSED, f"{captures} captures of {len(digests)} different trees")


def _racing_tree(tree: Path, outside: Path) -> Path:
    for number in range(6):
        (tree / f"d{number}/inner").mkdir(parents=True)
        (tree / f"d{number}/inner/{PRIVATE}").write_bytes(b"inside")
        (tree / f"f{number}").write_bytes(b"inside")
        (tree / f"l{number}").symlink_to([outside, outside / PRIVATE, Path("..")][number % 3])
    os.mkfifo(tree / "p0")
    return tree


def _exchange(libc: ctypes.CDLL, tree: Path, ended: threading.Event) -> None:
    chosen = random.Random(7)  # noqa: S311 — any order will do
    names = [f"{kind}{number}" for kind in "dfl" for number in range(6)] + ["p0", "d0/inner", "d1/inner", "d2/inner"]
    paths = [os.fsencode(tree / name) for name in names]
    while not ended.is_set():
        libc.renameat2(_NOW, chosen.choice(paths), _NOW, chosen.choice(paths), _EXCHANGE)
