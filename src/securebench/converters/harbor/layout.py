"""One `terminal_task` row as the files of a task directory, and what of it cannot be said there. Reads only to see what
a checker needs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from securebench import _fs
from securebench.benchmark_pack import MAX_ASSET_ENTRIES, BenchmarkRow
from securebench.converters.harbor.parts import changed_parts, empty_directories
from securebench.converters.harbor.scripts import reward_script, solve_script, worker_files
from securebench.converters.harbor.task_toml import task_toml
from securebench.families.terminal_task import TerminalTaskEval
from securebench.importers.base import CannotConvert
from securebench.resources import PackFile, Visibility
from securebench.tasks import SecureBenchTask
from securebench.verifiers.checkers.bench import DEFAULT_TIMEOUT, tests_place

_WORKDIR = re.compile(r"/[\w./+@%-]+", re.ASCII)
_TEST, _MOVED, _SOLVE = "test.sh", "securebench-checker.sh", "solve.sh"
_IMPORTED = re.compile(rb"\b(?:from|import)\s+securebench\b")
_SEARCHED = 2**20


@dataclass(slots=True)
class TaskFiles:
    """What lies in the directory: texts of ours and files of the pack, by place, and what to tell about the row."""

    texts: dict[str, tuple[str, bool]] = field(default_factory=dict)  # whether executable
    copies: dict[str, PackFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def write(self, place: str, text: str, executable: bool = False) -> None:
        self.texts[place] = text, executable

    def copy(self, place: str, file: PackFile) -> None:
        self.copies[place] = replace(file, read_only=False)

    def check(self) -> None:
        """Raises CannotConvert where a file of the pack lies where one of ours has to be."""
        for ours in self.texts:
            for place in self.copies:
                if f"{ours}/".startswith(f"{place}/") or place.startswith(f"{ours}/"):
                    raise CannotConvert("has a file where one of Harbor's has to be", ours)


def task_files(task: SecureBenchTask, row: BenchmarkRow, image: str | None) -> TaskFiles:
    """`image` is for rows that name none. Raises CannotConvert."""
    evaluation = row.row.eval
    if not isinstance(evaluation, TerminalTaskEval):
        raise CannotConvert(f"is of family {task.task_type}; Harbor's tasks are terminal tasks")
    made = TaskFiles()
    public = task.agent_payload()["input"]
    told = [public["instructions"], *([f"Context: {public['context']}"] if public.get("context") else [])]
    made.write("instruction.md", "\n\n".join(told))
    whole = _environment(made, task, image)
    seconds = evaluation.checker.timeout_seconds or task.environment.timeout_seconds or DEFAULT_TIMEOUT
    text, notes = task_toml(task.environment, row.row.metadata, test_seconds=seconds, whole_image=whole)
    made.write("task.toml", text)
    made.notes += notes
    _tests(made, task, evaluation)
    _solution(made, task)
    _stays_behind(made, evaluation)
    made.check()
    return made


def _environment(made: TaskFiles, task: SecureBenchTask, default: str | None) -> str | None:
    """The Dockerfile and what it copies; the image itself where nothing is copied and it holds the workspace."""
    environment = task.environment
    image, workdir = environment.image or default, environment.workdir
    if image is None:
        raise CannotConvert("names no image; say one with --image")
    if not _WORKDIR.fullmatch(workdir):
        raise CannotConvert("its working directory cannot be written in a Dockerfile", workdir)
    assets = [file for resource in task.resources.resources if resource.is_asset for file in resource.files]
    lines = [f"FROM {image}", f"WORKDIR {workdir}"]
    if assets:
        lines.append(f"COPY files/ {workdir}/")
    if assets and environment.materialize_workdir_from_image:
        lines.append(f"RUN test -d {workdir}")
        made.notes.append("its workspace is what the image holds and more; to import it again, use --build")
    made.write("environment/Dockerfile", "".join(f"{line}\n" for line in lines))
    for file in assets:
        made.copy(f"environment/files/{file.mount}", file)
    if empty := empty_directories(assets):
        told = ", ".join(empty[:5])
        made.notes.append(f"empty directories of its assets are not imported again: {len(empty)} ({told})")
    if kept := [str(file.mount) for file in assets if file.read_only]:
        made.notes.append(f"read-only assets can be written there: {len(kept)} ({', '.join(kept[:5])})")
    return image if environment.materialize_workdir_from_image and not assets else None


def _tests(made: TaskFiles, task: SecureBenchTask, evaluation: TerminalTaskEval) -> None:
    """Checker and test files as they lie in `/tests`, with a `test.sh` that writes the reward."""
    checker = evaluation.checker
    private = [r for r in task.resources.resources if r.visibility is Visibility.EVALUATION_INPUTS]
    files = {str(file.path): file for resource in private for file in resource.files}
    places = {path: str(tests_place(file.mount)) for path, file in files.items()}
    runs = evaluation.run_tests or checker
    ran = places[str(PurePosixPath(runs.path))]
    by_pytest = evaluation.run_tests is None and checker.source == "pytest"
    if checker.source == "pytest":
        made.notes.append("its checker needs python3 and pytest in the image")
    if checker.source == "pytest" and not by_pytest:
        made.notes.append("the reward is what run_tests ends with; nobody counts the tests there")
    is_harbors = ran == _TEST and not by_pytest and checker.reward
    if _TEST in places.values() and not is_harbors:
        if ran != _TEST:  # whatever it is that calls this one would find ours there
            raise CannotConvert("has a file where one of Harbor's has to be", f"tests/{_TEST}")
        places = {path: _MOVED if place == _TEST else place for path, place in places.items()}
        ran = places[str(PurePosixPath(runs.path))]
        made.notes.append(f"{_TEST} among its tests is called {_MOVED} there")
    for path, file in files.items():
        made.copy(f"tests/{places[path]}", file)
    if is_harbors:
        return
    worker = any(_names_worker(file) for file in files.values())
    if worker:
        for place, text in worker_files().items():
            made.write(f"tests/{place}", text)
        made.notes.append("its checker asks the worker to execute; there that happens in the checker's own container")
    workdir = task.environment.workdir
    script = reward_script(ran, pytest=by_pytest, worker=worker, must_reward=checker.reward, workdir=workdir)
    made.write(f"tests/{_TEST}", script, executable=True)


def _solution(made: TaskFiles, task: SecureBenchTask) -> None:
    references = {r.name: r.files[0] for r in task.resources.resources if r.name.startswith("reference_") and r.files}
    script, workspace = references.get("reference_script"), references.get("reference_workspace")
    if script is not None:
        made.copy("solution" if (script.root / script.path).is_dir() else f"solution/{_SOLVE}", script)
        if workspace is not None:
            made.notes.append("its reference_workspace stays behind; the solution is its reference_script")
    elif workspace is not None:
        assets = [file for resource in task.resources.resources if resource.is_asset for file in resource.files]
        kept, same = changed_parts(workspace, assets)
        for place, file in kept.items():
            made.copy(str(PurePosixPath("solution/workspace") / place), file)
        if same:
            told = ", ".join(same[:5])
            made.notes.append(f"its solution is without files that its assets have already: {len(same)} ({told})")
        made.write(f"solution/{_SOLVE}", solve_script(task.environment.workdir, bool(kept)), executable=True)
    else:
        made.notes.append("has no reference, so there is no solution")


def _stays_behind(made: TaskFiles, evaluation: TerminalTaskEval) -> None:
    """What Harbor has no place for."""
    if evaluation.mutants:
        made.notes.append(f"mutants stay behind: {len(evaluation.mutants)}")
    if evaluation.expected_state is not None:
        made.notes.append("expected_state stays behind")
    if evaluation.needed_commands:
        made.notes.append("needed_commands stay behind; nothing grants capabilities there")
    if evaluation.checker.assurance != "isolated":
        made.notes.append("its checker is shared_process; to import it again so, use --set assurance=shared_process")
    if undeclared := sorted(evaluation.__pydantic_extra__ or ()):
        made.notes.append(f"fields of eval that only the author knows stay behind: {len(undeclared)}")


def _names_worker(file: PackFile) -> bool:
    """Whether a checker's file imports our module."""
    with _fs.open_directory(file.root) as root:
        entries = _fs.walk(root, file.path, MAX_ASSET_ENTRIES)
        return any(not entry.is_dir and _IMPORTED.search(os.read(entry.descriptor, _SEARCHED)) for entry in entries)
