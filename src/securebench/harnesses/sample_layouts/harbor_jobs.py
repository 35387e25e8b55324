"""Jobs and trials of Harbor. A trial names its task in `result.json`; its candidate is looked for among the artifacts
that were collected from it, by name:

| Task collects | Artifact                     |
|---------------|------------------------------|
| a patch       | `*.patch`, `*.diff`          |
| text          | `answer.txt`                 |
| code          | `candidate.*`, `solution.*`  |

Exactly one must be there. Of a trial that ended with an exception, whatever it left behind, or whose artifact Harbor
looked for and did not find, nothing was produced. Where a host of ours failed, which was not the candidate's fault, it
is judged. A workspace is not in such a directory: its trials are refused. Rewards are never looked
at."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from securebench import _json
from securebench._fs import Missing, UnsafeEntry
from securebench._schema import found
from securebench.errors import Problem
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_layouts.base import Piece, Spool
from securebench.harnesses.sample_layouts.directories import Folder

RESULT, MANIFEST = "result.json", "manifest.json"
HOST_FAILED = "InfrastructureError"
"""The exception of trials that `securebench export` wrote of attempts on which the host failed."""
_NUMBERED = re.compile(r".*__([0-9]{1,9})", re.DOTALL)
_ARTIFACTS = "artifacts"
_DEPTH, _MOST = 12, 10_000
_NAMES: Mapping[CandidateKind, tuple[str, tuple[str, ...]]] = {
    CandidateKind.PATCH: ("model_patch", ("*.patch", "*.diff")),
    CandidateKind.TEXT: ("solution", ("answer.txt",)),
    CandidateKind.CODE: ("solution", ("candidate.*", "solution.*")),
}


class _Refused(ValueError):
    """Why a trial gives no sample."""


class HarborFolder:
    """A `Reading` of a job, or of one trial; trials in the order of the numbers behind their names (`task__2`), and
    those without in the order of their names."""

    def __init__(self, folder: Folder, spool: Spool, kinds: Mapping[str, CandidateKind]) -> None:
        self.file = spool.file
        self._folder = folder
        self._spool = spool
        self._kinds = kinds

    @property
    def digest(self) -> str:
        return self._folder.digest

    def pieces(self) -> Iterator[Piece | Problem]:
        try:
            trials = list(self._trials())
        except (UnsafeEntry, _json.JsonError) as error:
            yield Problem(self._folder.place(), 0, "", str(error))
            return
        for parts in trials:
            place = self._folder.place(*parts, RESULT)
            try:
                yield self._trial(parts, place)
            except (_Refused, UnsafeEntry, _json.JsonError) as error:
                yield Problem(place, 0, "", str(error))

    def _trials(self) -> Iterator[tuple[str, ...]]:
        if self._folder.has(RESULT) and "trial_name" in self._result(()):
            yield ()
            return
        yield from ((name,) for name in self._folder.folders() if self._folder.has(name, RESULT))

    def _result(self, parts: tuple[str, ...]) -> dict[str, Any]:
        value = _json.loads(self._folder.read(*parts, RESULT))
        return value if isinstance(value, dict) else {}

    def _trial(self, parts: tuple[str, ...], place: str) -> Piece | Problem:
        """Raises _Refused, UnsafeEntry, JsonError."""
        result = self._result(parts)
        task = result.get("task_name")
        if not isinstance(task, str):
            raise _Refused(f"no result of a trial: task_name is {found(task)}")
        kind = self._kinds.get(task)
        if kind is None:
            return self._spool.piece({"task_id": task, "solution": None}, place)  # refused with all unknown tasks
        if kind not in _NAMES:
            message = f"the candidate of task {task[:100]!r} is a {kind}, of which Harbor keeps no copy"
            raise _Refused(f"{message}: it cannot be graded from here; run the agent with `securebench run`")
        key, patterns = _NAMES[kind]
        order = _order(parts[-1]) if parts else 0
        if _was_ended(result):
            return self._spool.piece({"task_id": task, key: None}, place, order=order)
        paths = [path for path in self._artifacts(parts) if _named(path, patterns)]
        if len(paths) > 1:
            raise _Refused(f"{len(paths)} artifacts may be the candidate ({', '.join(patterns)}); leave one")
        if not paths and not self._was_missing(parts, patterns):
            words = f"no candidate among its artifacts: a {kind} is looked for as {' or '.join(patterns)}"
            raise _Refused(f"{words}; have Harbor collect it")
        data = self._folder.read(*paths[0].parts) if paths else None
        text = None if data is None else data.decode("utf-8", "surrogateescape")
        return self._spool.piece({"task_id": task, key: text}, place, order=order)

    def _artifacts(self, parts: tuple[str, ...]) -> Iterator[PurePosixPath]:
        """Every file among the artifacts; links and whatever else is no file are none."""
        folders, left = [PurePosixPath(*parts, _ARTIFACTS)], _MOST
        while folders:
            folder = folders.pop()
            for name, mode in self._folder.entries(*folder.parts):
                left -= 1
                if left < 0 or len(folder.parts) > _DEPTH:
                    raise _Refused(f"more than {_MOST} artifacts, or nested deeper than {_DEPTH}")
                if stat.S_ISDIR(mode):
                    folders.append(folder / name)
                elif stat.S_ISREG(mode):
                    yield folder / name

    def _was_missing(self, parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
        try:
            entries = _json.loads(self._folder.read(*parts, _ARTIFACTS, MANIFEST))
        except Missing:
            return False
        return any(
            isinstance(entry, dict)
            and entry.get("status") in ("failed", "empty")
            and isinstance(source := entry.get("source"), str)
            and _named(PurePosixPath(source), patterns)
            for entry in (entries if isinstance(entries, list) else ())
        )


def _was_ended(result: Mapping[str, Any]) -> bool:
    """By an exception, other than one of a host of ours."""
    told = result.get("exception_info")
    return told is not None and not (isinstance(told, dict) and told.get("exception_type") == HOST_FAILED)


def _order(name: str) -> int:
    match = _NUMBERED.fullmatch(name)
    return 0 if match is None else int(match[1])


def _named(path: PurePosixPath, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path.name, pattern) for pattern in patterns)
