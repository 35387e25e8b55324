"""From a pack to task directories: each row in its own, or told why not."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

from securebench import _fs
from securebench._schema import Schema
from securebench.benchmark_compiler import compile_benchmark_row
from securebench.benchmark_pack import BenchmarkPack
from securebench.converters.harbor.layout import TaskFiles, task_files
from securebench.converters.report import ConversionReport
from securebench.errors import ConfigError, PackError
from securebench.importers.base import CannotConvert
from securebench.pack_schema import Environment
from securebench.workspaces.copying import copy_pack_file
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


def write_tasks(pack: BenchmarkPack, target: Path, image: str | None = None) -> ConversionReport:
    """Write a directory for each `terminal_task` row into the empty directory `target`; `image` is for rows that name
    none. Raises ConfigError where that is no image or no row has a place in Harbor, PackError, IntegrityError,
    OSError."""
    report = ConversionReport()
    _check_image(image)
    with _fs.open_directory(target) as root:
        for row in pack:
            report.rows += 1
            task = compile_benchmark_row(pack, row)
            name = directory_name(task.id)
            try:
                made = task_files(task, row, image)
            except CannotConvert as error:
                report.leave_out(task.id, row.line, str(error))
                continue
            _write(root, PurePosixPath(name), made, task.id)
            report.written += 1
            called = [f"its directory is called {name}"] if name != task.id else []
            for text in (*called, *made.notes):
                report.note(task.id, row.line, text)
    if not report.written:
        shown = "\n".join(str(one) for one in report.left_out[:10])
        raise ConfigError(f"{pack.tasks_path}: none of {report.rows} rows has a place in Harbor:\n{shown}")
    _fs.settle_times(target)
    return report


def directory_name(task_id: str) -> str:
    """The id where it can be a directory's name, else what is left of it and a digest of all of it."""
    if _NAME.fullmatch(task_id):
        return task_id
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", task_id).strip("-._")[:80] or "task"
    return f"{plain}-{hashlib.sha256(task_id.encode()).hexdigest()[:12]}"


def _check_image(image: str | None) -> None:
    """It goes into a Dockerfile, so it is held to what rows are held to."""
    checked = Schema[Environment](Environment).validate({"image": image}, "--image", lambda _: 0)
    if isinstance(checked, list):
        raise ConfigError([replace(problem, field="") for problem in checked])


def _write(root: int, directory: PurePosixPath, made: TaskFiles, task_id: str) -> None:
    budget = WorkspaceBudget(MaterializationLimits())
    try:
        for place, file in made.copies.items():
            copy_pack_file(file, root, directory / place, budget)
        for place, (text, executable) in made.texts.items():
            _fs.write_new(root, directory / place, text.encode(), 0o755 if executable else 0o644)
    except (_fs.UnsafeEntry, FileExistsError) as error:
        raise PackError(f"task {task_id}: {error}") from error
