"""Logs of Inspect, `.eval` and `.json`: what the model said last in a sample is the candidate of the task with the
sample's id, and the epoch orders attempts. A sample without any output was not answered: nothing was produced. A log
that `securebench export` wrote holds what was judged, exactly, in `metadata.securebench`; that is then the candidate.

A log says much more (scores, targets, events); nothing of it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from securebench import _json
from securebench._schema import found
from securebench.errors import Problem
from securebench.harnesses.sample_layouts.base import Piece, Spool
from securebench.harnesses.sample_layouts.json_parts import JsonParts
from securebench.harnesses.sample_layouts.zip_members import Members, NotReadable
from securebench.harnesses.samples import EXACT, REPLY

MAX_SAMPLE = 128 * 2**20
"""Bytes of one sample of a log, which holds the whole story of how it came about."""
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
OURS = "securebench"
"""Where in a sample's `metadata` the exact candidate stands."""


class InspectJson:
    """A `Reading` of a `.json` log."""

    def __init__(self, file: BinaryIO, name: str, spool: Spool) -> None:
        self.file = spool.file
        self._name = name
        self._take = _Taken(spool)
        self._parts = JsonParts(file, MAX_SAMPLE, nan_is_null=True)

    @property
    def digest(self) -> str:
        return self._parts.digest

    def pieces(self) -> Iterator[Piece | Problem]:
        parts = self._parts
        try:
            for key, _ in parts.members():
                if key == "samples" and parts.peek() == "[":
                    for line in parts.elements():
                        yield self._take.piece(parts.value(), self._name, line)
                else:
                    parts.value()
            parts.end()
        except _json.JsonError as error:
            yield Problem(self._name, parts.line, "", str(error))


class InspectZip:
    """A `Reading` of an `.eval` log: a zip archive with a file for each sample and epoch."""

    def __init__(self, file: BinaryIO, name: str, spool: Spool, digest: str) -> None:
        self.file = spool.file
        self.digest = digest
        self._archive = file
        self._name = name
        self._take = _Taken(spool)

    def pieces(self) -> Iterator[Piece | Problem]:
        try:
            members = Members(self._archive, MAX_SAMPLE)
        except NotReadable as error:
            yield Problem(self._name, 0, "", str(error))
            return
        with members:
            if not any(header in members.names for header in _HEADERS):
                yield Problem(self._name, 0, "", "a zip archive, but no log of Inspect: it has no header.json")
                return
            for name in members.names:
                if name.startswith(_SAMPLES) and name.endswith(".json"):
                    yield self._member(members, name)

    def _member(self, members: Members, name: str) -> Piece | Problem:
        place = f"{self._name}/{name}"
        try:
            text = members.read(name).decode()
            value, end = _json.decode(text, len(text) - len(text.lstrip()), nan_is_null=True)
            if text[end:].strip():
                raise _json.JsonError("not JSON: Extra data")
        except (NotReadable, _json.JsonError) as error:
            return Problem(place, 0, "", str(error))
        except UnicodeDecodeError:
            return Problem(place, 0, "", "not UTF-8")
        return self._take.piece(value, place)


class _Taken:
    """Samples of a log, each task's epochs once."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._seen: set[tuple[str, int]] = set()

    def piece(self, value: Any, place: str, line: int = 0) -> Piece | Problem:
        if not isinstance(value, dict):
            return Problem(place, line, "", f"expected a sample, found {found(value)}")
        task, epoch = value.get("id"), value.get("epoch", 1)
        if not isinstance(task, str | int) or isinstance(task, bool):
            return Problem(place, line, "id", f"expected the id of a task, found {found(task)}")
        if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 <= epoch < 2**31:
            return Problem(place, line, "epoch", "expected a number from 1")
        if (str(task), epoch) in self._seen:
            return Problem(place, line, "epoch", f"epoch {epoch} of task {str(task)[:100]!r} comes twice")
        self._seen.add((str(task), epoch))
        output = value.get("output")
        choices = output.get("choices") if isinstance(output, dict) else None
        said = output.get("completion") if isinstance(output, dict) and choices else None
        if said is not None and not isinstance(said, str):
            return Problem(place, line, "output.completion", f"expected text, found {found(said)}")
        exact = _exact(value)
        if len(exact) > 1 or not all(isinstance(text, str) for text in exact.values()):
            return Problem(place, line, "metadata.securebench", f"expected one text, {' or '.join(EXACT)}")
        return self._spool.piece({"task_id": task, **(exact or {REPLY: said})}, place, line, epoch)


def _exact(value: dict[str, Any]) -> dict[str, Any]:
    """The candidate as it was judged, by its key, where the log says it."""
    metadata = value.get("metadata")
    ours = metadata.get(OURS) if isinstance(metadata, dict) else None
    return {key: ours[key] for key in EXACT if key in ours} if isinstance(ours, dict) else {}
