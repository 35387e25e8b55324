"""Looks for what is hidden in everything an agent gets: what it is told, its workspace, its image."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import anyio

from securebench import _json
from securebench._leftovers import staging_directory
from securebench.audit.pack.derived import stale_files
from securebench.audit.pack.hidden import Hidden, pack_files
from securebench.audit.pack.in_files import (
    HALF,
    Files,
    copies_of_the_fix,
    expected_user,
    image_files,
    in_files,
    is_text,
    look_at_image,
    tree_files,
)
from securebench.audit.pack.leaks import Leak, LeakSearch
from securebench.audit.pack.notes import Note
from securebench.audit.report.model import Mark
from securebench.benchmark_compiler import compile_benchmark_row
from securebench.benchmark_pack import BenchmarkPack, RowIndex
from securebench.candidates.store import CandidateStore
from securebench.errors import ConfigError, InfrastructureError, IntegrityError, PackError, SandboxUnavailable
from securebench.families.base import CandidateKind
from securebench.families.registry import FAMILIES, family
from securebench.resources import Component
from securebench.sandboxes.base import Sandbox
from securebench.tasks import SecureBenchTask
from securebench.workspaces.building import WorkspaceRequest, build_workspace


@dataclass(slots=True)
class Sight:
    """What was seen, and how much was looked at."""

    notes: list[Note] = field(default_factory=list)
    rows: int = 0
    files: int = 0
    images: list[str] = field(default_factory=list)
    images_missing: list[str] = field(default_factory=list)
    """Not imported, so that only their working directories could be looked at, if anything."""

    def looked(self) -> dict[str, str]:
        if not self.rows:
            return dict.fromkeys(("A05", "P33"), "no row has files or an image")
        what = f"{self.rows} rows with files or code, {self.files} files"
        what += f", images {', '.join(self.images)}" if self.images else ""
        what += (
            f"; not imported, so only their working directories: {', '.join(self.images_missing)}"
            if self.images_missing
            else ""
        )
        return dict.fromkeys(("A01", "A04", "A05", "A08", *([] if self.images_missing else ["P33"])), what)


async def look_at_pack(
    pack: BenchmarkPack, sandbox: Sandbox | None, workers: int | None = None, on_row: Callable[[], None] = lambda: None
) -> Sight:
    """Look at every row that runs code or has files. `sandbox` is asked for images that only it has."""
    sight = Sight()
    limiter = anyio.CapacityLimiter(workers or len(os.sched_getaffinity(0)))
    by_image: dict[str, list[Hidden]] = defaultdict(list)

    async def one(number: int, entry: RowIndex) -> None:
        async with limiter:
            task = compile_benchmark_row(pack, pack[number])
            hidden = Hidden(task)
            try:
                files = await _workspace(task, sandbox)
                sight.notes += await anyio.to_thread.run_sync(_seen, task, hidden, files)
                sight.files += len(files)
            except PackError as error:
                sight.notes.append(Note("P25", f"its workspace cannot be built: {error}", task=task.id))
            except (SandboxUnavailable, ConfigError, InfrastructureError, IntegrityError) as error:
                detail = f"its workspace cannot be built here: {str(error).splitlines()[0]}"
                sight.notes.append(Note("A01", detail, task=task.id, mark=Mark.SKIPPED))
            sight.rows += 1
            if entry.image and FAMILIES[entry.family].executes:
                by_image[entry.image].append(hidden)
            on_row()

    async with anyio.create_task_group() as group:
        for number, entry in enumerate(pack.entries):
            if is_seen(entry):
                group.start_soon(one, number, entry)
    for image, rows in by_image.items():
        tree = image_files(image)
        (sight.images_missing if tree is None else sight.images).append(image)
        sight.files += len(tree or ())
        for hidden in rows if tree else ():
            workdir = hidden.task.environment.workdir.strip("/")
            sight.notes += look_at_image(hidden.task, hidden, tree or [], workdir)
        sight.notes += expected_user(image, rows[0].task.id)
    lines = {entry.id: entry.line for entry in pack.entries}
    sight.notes = [_placed(note, lines) for note in sight.notes]
    return sight


def is_seen(entry: RowIndex) -> bool:
    return FAMILIES[entry.family].executes or bool(entry.files)


def _placed(note: Note, lines: dict[str, int]) -> Note:
    return Note(note.rule, note.detail, lines.get(note.task, 0), note.task, note.column, note.mark)


async def _workspace(task: SecureBenchTask, sandbox: Sandbox | None) -> Files:
    """The files an agent starts with."""
    view = task.view_for(Component.AGENT)
    kind = family(task.task_type).candidate
    if kind not in (CandidateKind.PATCH, CandidateKind.WORKSPACE):
        return [(str(file.mount / path), data) for file in view.files() for path, data in pack_files(file)]
    with staging_directory() as staging:
        (place := staging / "workspace").mkdir()
        request = WorkspaceRequest(task.id, kind, view, task.environment, with_git=False)
        workspace = await build_workspace(request, place, CandidateStore(staging / "store"), sandbox)
        return list(tree_files(workspace.seed))


def public_parts(task: SecureBenchTask) -> dict[str, str]:
    """What a harness is told, in parts."""
    payload = task.agent_payload()
    parts = {f"input.{name}": _text(value) for name, value in payload["input"].items()}
    return parts | {"metadata": _text(payload["metadata"]), "id": task.id}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_text(item) for item in value.values())
    return "\n".join(map(_text, value)) if isinstance(value, list) else _json.dumps(value)


def _seen(task: SecureBenchTask, hidden: Hidden, files: Files) -> list[Note]:
    """Everything found about one row."""
    if not family(task.task_type).executes:
        return list(_in_reading_matter(task, hidden, files))
    by_right = {path: data.decode("utf-8", "replace") for path, data in files}
    known = "\n".join(by_right.get(place, "") for place in {*hidden.places, *_patched(hidden.gold)})
    search = LeakSearch(hidden.secrets, known)
    notes = [*_told(task, search), *in_files(task, hidden, search, files)]
    notes += copies_of_the_fix(task, hidden, files)
    return notes


def _told(task: SecureBenchTask, search: LeakSearch) -> Iterator[Note]:
    for place, text in public_parts(task).items():
        for leak in search.in_text(place, text):
            rule = "A08" if place.startswith("input.") else "A01"
            yield Note(rule, str(leak), task=task.id, mark=_weighed(task, leak))


def _weighed(task: SecureBenchTask, leak: Leak) -> Mark:
    """What an agent is told to write may well be what is checked; a solution, or most of the tests, may not."""
    asked = task.task_type == "terminal_task" and leak.place.startswith("input.")
    small = leak.share < HALF and leak.field in ("eval.tests", "eval.test_files", "eval.checker")
    return Mark.FAILED if leak.sure and not asked and not small else Mark.WARNING


def _in_reading_matter(task: SecureBenchTask, hidden: Hidden, files: Files) -> Iterator[Note]:
    """Files of a question are there to be read, so only what is spelled in another way is told, and whole copies."""
    search = LeakSearch(hidden.secrets)
    for path, data in files:
        if copied := hidden.copies.get(hashlib.sha256(data).hexdigest()):
            yield Note("A01", f"{path} is a copy of a file of {copied}", task=task.id)
            continue
        for leak in search.in_text(path, data.decode("utf-8", "replace")) if is_text(data) else ():
            if leak.form in ("base64", "hex", "reversed"):
                yield Note("A01", str(leak), task=task.id, mark=Mark.FAILED if leak.sure else Mark.WARNING)
    for stale in stale_files(files, hidden.tests):
        yield Note("A05", f"{stale.path} was made by a tool", task=task.id)


def _patched(patch: str) -> Iterator[str]:
    for line in patch.splitlines():
        if line.startswith("+++ "):
            yield line[4:].partition("\t")[0].removeprefix("b/")
