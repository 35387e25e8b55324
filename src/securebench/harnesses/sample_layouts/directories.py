"""Samples in a directory: those of EvalPlus (`HumanEval_0/0.py`), and jobs and trials of Harbor."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from securebench._canonical import digest_value
from securebench._fs import Missing, UnsafeEntry, entries_in, open_beneath, read_bounded
from securebench._paths import relative_path
from securebench.errors import Problem
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_layouts.base import MAX_LINE, MAX_SAMPLES, Piece, Spool

_NUMBER = 9  # digits of a file's name


class Folder:
    """Reads files of a directory the operator named, beneath it only, and keeps what the digest needs."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.path = path
        self._descriptor = descriptor
        self._read: list[list[str]] = []

    @property
    def digest(self) -> str:
        """Of the names and bytes of what was read."""
        return digest_value(self._read)

    def place(self, *parts: str) -> str:
        return str(self.path.joinpath(*parts))

    def entries(self, *parts: str) -> list[tuple[str, int]]:
        """Names and modes of what is in a directory; nothing where there is none. Raises UnsafeEntry."""
        try:
            with open_beneath(self._descriptor, _beneath(*parts)) as descriptor:
                return entries_in(descriptor, MAX_SAMPLES) if stat.S_ISDIR(os.fstat(descriptor).st_mode) else []
        except Missing:
            return []

    def folders(self) -> list[str]:
        """The names of the directories in it."""
        return [name for name, mode in self.entries() if stat.S_ISDIR(mode)]

    def has(self, *parts: str) -> bool:
        """Whether there is such a file, not a link to one."""
        *folder, name = parts
        return any(name == one and stat.S_ISREG(mode) for one, mode in self.entries(*folder))

    def read(self, *parts: str) -> bytes:
        """Raises UnsafeEntry, which is Missing where there is no such file."""
        path = _beneath(*parts)
        with open_beneath(self._descriptor, path) as descriptor:
            data = read_bounded(descriptor, MAX_LINE, path.name)
        self._read.append([str(path), hashlib.sha256(data).hexdigest()])
        return data


def _beneath(*parts: str) -> PurePosixPath:
    try:
        return relative_path("/".join(parts)) if parts else PurePosixPath()
    except ValueError as error:
        raise UnsafeEntry(f"{'/'.join(parts)!a}: {error}") from None


class EvalPlusFolder:
    """A `Reading` of a directory for each task, named as the task with `_` for `/`, and in it a program for each
    sample, `0.py` and so on. Other files are not looked at: EvalPlus writes its results beside them."""

    def __init__(self, folder: Folder, spool: Spool, kinds: Mapping[str, CandidateKind]) -> None:
        self.file = spool.file
        self._folder = folder
        self._spool = spool
        self._tasks: dict[str, list[str]] = {}
        for task in kinds:
            self._tasks.setdefault(task.replace("/", "_"), []).append(task)

    @property
    def digest(self) -> str:
        return self._folder.digest

    def pieces(self) -> Iterator[Piece | Problem]:
        empty = True
        for piece in self._pieces():
            empty = False
            yield piece
        if empty:
            words = "holds no sample: neither TASK/0.py, as EvalPlus writes them, nor result.json of a job of Harbor"
            yield Problem(self._folder.place(), 0, "", words)

    def _pieces(self) -> Iterator[Piece | Problem]:
        for name in self._folder.folders():
            try:
                programs = [program for program, _ in self._folder.entries(name) if program.endswith(".py")]
            except UnsafeEntry as error:
                yield Problem(self._folder.place(name), 0, "", str(error))
                continue
            tasks = self._tasks.get(name, [name])
            if programs and len(tasks) > 1:
                yield Problem(self._folder.place(name), 0, "", f"may be {' or '.join(map(repr, tasks[:5]))}")
                continue
            for program in programs:
                yield self._program(tasks[0], name, program)

    def _program(self, task: str, name: str, program: str) -> Piece | Problem:
        place, number = self._folder.place(name, program), program.removesuffix(".py")
        if not (number.isascii() and number.isdigit() and len(number) <= _NUMBER):
            return Problem(place, 0, "", "expected the number of a sample, as in 0.py")
        try:
            data = self._folder.read(name, program)
        except UnsafeEntry as error:
            return Problem(place, 0, "", str(error))
        # What is no UTF-8 has no place in JSON as it is; so kept, it fails where every such sample does.
        sample = {"task_id": task, "solution": data.decode("utf-8", "surrogateescape")}
        return self._spool.piece(sample, place, order=int(number))
