"""Samples from a file or directory: checked completely in one pass, kept as a small index, read again one by one.

What is in it is a stranger's: strict JSON, bounded lines, nothing believed twice. A line that is read again must have
the digest it had, so the file cannot change under a run. `.gz`, standard input, and every layout but lines are spooled
to a private file first. The digest is that of the lines, the document or the archive, packed or not; of a directory it
is that of the files that were read."""

from __future__ import annotations

import hashlib
import os
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from securebench import _json
from securebench._fs import UnsafeEntry
from securebench._schema import suggest
from securebench.errors import ConfigError, IntegrityError, Problem, os_reason
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_layouts.base import MAX_SAMPLES, Piece
from securebench.harnesses.sample_layouts.opening import STDIN, open_reading
from securebench.harnesses.samples import NotASample, check_kind, read_sample

__all__ = ["STDIN", "Line", "SampleFile", "open_samples"]

MAX_PROBLEMS = 200
_DIGEST = 16  # bytes kept of each line, under a key that nobody knows before
_SUGGESTED = 10  # problems that say what may have been meant
_COMPARED = 2000  # ids that a misspelt one is compared with


class Line(NamedTuple):
    """One sample as it stands in its file."""

    number: int
    data: bytes


class SampleFile:
    """Samples by task: the n-th of a task is its attempt n. Memory for numbers only."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.digest = ""
        self._file = file
        self._key = os.urandom(_DIGEST)
        self._offsets, self._sizes, self._lines = array("Q"), array("I"), array("I")
        self._orders = array("I")
        self._digests = bytearray()
        self._tasks: dict[str, array[int]] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def count(self, task_id: str) -> int:
        """How many samples a task has."""
        return len(self._tasks.get(task_id, ()))

    def line(self, task_id: str, attempt: int) -> Line | None:
        """The sample that is this attempt; None where there is none. Raises IntegrityError when the file changed."""
        samples = self._tasks.get(task_id, ())
        if attempt > len(samples):
            return None
        place = samples[attempt - 1]
        try:
            data = os.pread(self._file.fileno(), self._sizes[place], self._offsets[place])
        except OSError as error:
            raise IntegrityError(f"{self.name}: {os_reason(error)}, but the samples were taken from it") from error
        if self._digest(data) != self._digests[place * _DIGEST : (place + 1) * _DIGEST]:
            raise IntegrityError(f"{self.name}:{self._lines[place]}: changed since it was checked; start again")
        return Line(self._lines[place], data)

    def _add(self, task_id: str, piece: Piece) -> None:
        self._tasks.setdefault(task_id, array("I")).append(len(self._offsets))
        self._offsets.append(piece.offset)
        self._sizes.append(len(piece.data))
        self._lines.append(piece.line)
        self._orders.append(piece.order)
        self._digests += self._digest(piece.data)

    def _sort(self) -> None:
        """Attempts as their layout orders them. Those of lines stay as they stand."""
        if any(self._orders):
            for task, places in self._tasks.items():
                self._tasks[task] = array("I", sorted(places, key=self._orders.__getitem__))

    def _digest(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, digest_size=_DIGEST, key=self._key).digest()


@contextmanager
def open_samples(path: Path, kinds: Mapping[str, CandidateKind]) -> Iterator[SampleFile]:
    """Samples for tasks with these kinds of candidates, by id; `-` is standard input. Raises ConfigError with every
    problem and its place."""
    name = "<stdin>" if str(path) == STDIN else str(path)
    with ExitStack() as stack:
        try:
            reading = stack.enter_context(open_reading(path, name, kinds))
            samples = SampleFile(name, reading.file)
            _Check(samples, kinds).read(reading.pieces())
            reading.file.flush()  # what was spooled is read by descriptor
            samples.digest = reading.digest
        except UnsafeEntry as error:
            raise ConfigError([Problem(name, 0, "", str(error))]) from error
        except (OSError, EOFError, zlib.error) as error:
            reason = os_reason(error) if isinstance(error, OSError) and error.errno else f"cannot be read: {error}"
            raise ConfigError([Problem(name, 0, "", reason)]) from error
        yield samples


class _Check:
    """One pass over all pieces: fills the index, collects what is wrong."""

    def __init__(self, samples: SampleFile, kinds: Mapping[str, CandidateKind]) -> None:
        self._samples = samples
        self._kinds = kinds
        self._problems: list[Problem] = []
        self._suppressed = 0

    def read(self, pieces: Iterable[Piece | Problem]) -> None:
        """Raises ConfigError."""
        for piece in pieces:
            if isinstance(piece, Problem):
                self._report(piece)
            elif len(self._samples) >= MAX_SAMPLES:
                self._report(Problem(piece.place, piece.line, "", f"more than {MAX_SAMPLES} samples"))
                break
            else:
                self._piece(piece)
        if not len(self._samples) and not self._problems:
            self._report(Problem(self._samples.name, 0, "", "holds no sample"))
        if self._problems:
            raise ConfigError(self._problems, self._suppressed)
        self._samples._sort()

    def _piece(self, piece: Piece) -> None:
        try:
            sample = read_sample(_json.loads(piece.data))
            kind = self._kinds.get(sample.task_id)
            if kind is None:
                named = sample.task_id[:100]
                raise NotASample("task_id", f"the pack has no task {named!r}{self._meant(named)}")
            check_kind(sample, kind)
        except _json.JsonError as error:
            self._report(Problem(piece.place, piece.line, "", str(error)))
        except NotASample as error:
            self._report(Problem(piece.place, piece.line, error.key, str(error)))
        else:
            self._samples._add(sample.task_id, piece)

    def _meant(self, named: str) -> str:
        """Which tasks may be meant, where that is still looked for: it costs. Some data sets number tasks that others
        name, as `2` and `Mbpp/2`."""
        if len(self._problems) >= _SUGGESTED:
            return ""
        ends = [task for task in self._kinds if named and task.endswith(f"/{named}")]
        return f" (did you mean {ends[0]!r}?)" if len(ends) == 1 else suggest(named, islice(self._kinds, _COMPARED))

    def _report(self, problem: Problem) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._suppressed += 1
