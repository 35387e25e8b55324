"""One task's directory to one row of a pack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from securebench.errors import ConfigError
from securebench.importers.asking import Asker
from securebench.importers.base import CannotConvert, Converted, NewFile, PackRow, Place, Request, Setting
from securebench.importers.formats.harbor.directory import TaskDirectory, task_directories
from securebench.importers.formats.harbor.environment import Images, place_of
from securebench.importers.formats.harbor.private import Secrets
from securebench.importers.formats.harbor.task_file import TaskFile, read_toml, read_yaml
from securebench.importers.sources.base import Source
from securebench.sandboxes._docker.client import Client, find_client

IMAGE_TEMPLATE, BUILD = "image-template", "build"
_SETTINGS = {
    IMAGE_TEMPLATE: Setting("the image of a task, with {task_id} in it, where images were built elsewhere"),
    BUILD: Setting(
        "yes: build the images that have to be built, with docker or podman", "no", kept=False, choices=("no", "yes")
    ),
    "workdir": Setting("the working directory of tasks that do not say theirs"),
    "assurance": Setting(
        "shared_process: tests run beside candidate code, with the image's programs",
        "isolated",
        choices=("isolated", "shared_process"),
    ),
}
_RUN, _TEST, _OUTPUTS = "run-tests.sh", "tests/test.sh", "tests/test_outputs.py"


class TaskDirectories:
    """A directory of tasks, or one task, as Harbor or Terminal-Bench has them; either name takes either layout."""

    family = "terminal_task"
    settings: Mapping[str, Setting] = _SETTINGS

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about

    def rows(self, source: Source, request: Request) -> Iterator[Converted]:
        """Raises ConfigError for settings that cannot be meant, SandboxUnavailable where nothing here builds images."""
        request.prompt.check(())
        builder = find_client() if request.settings[BUILD] == "yes" else None
        tasks = list(task_directories(source))
        if not tasks:
            raise ConfigError(f"{source.name}: holds no task; expected directories with task.toml or task.yaml")
        for task in tasks:
            try:
                row = _convert(task, request.settings, builder)
                yield Converted(Place(task.place), Asker(request.prompt).ask(row))
            except CannotConvert as error:
                yield Converted(Place(task.place), error)


def _convert(task: TaskDirectory, settings: Mapping[str, str], builder: Client | None) -> PackRow:
    said = read_toml(task.text("task.toml").encode()) if task.is_harbor else _yaml(task)
    instruction = said.instruction if said.instruction is not None else task.text("instruction.md")
    if not instruction.strip():
        raise CannotConvert("has no instruction", "instruction.md is empty")
    images = Images(settings[IMAGE_TEMPLATE], settings["workdir"], builder)
    tests = _Tests(task, said, settings["assurance"])
    checked = tests.fields()
    reference, more = _reference(task)
    secrets = Secrets(task)
    secrets.refuse_text("its instruction", instruction)
    place = place_of(task, said, images, secrets)
    return PackRow(
        id=task.name,
        input={"instructions": instruction},
        eval=checked | reference,
        assets=place.assets,
        environment=dict(place.environment) | _limits(said),
        metadata=said.metadata,
        files=(*place.files, *tests.files, *more),
        notes=(*said.notes, *place.notes, *_reference_notes(task, reference)),
    )


def _yaml(task: TaskDirectory) -> TaskFile:
    return read_yaml(task.text("task.yaml").encode(), task.place)


class _Tests:
    """The checker and its files, which lie in `/tests` as they would there."""

    def __init__(self, task: TaskDirectory, said: TaskFile, assurance: str) -> None:
        self._task, self._said, self._assurance = task, said, assurance
        self.files: list[NewFile] = []

    def fields(self) -> dict[str, Any]:
        task = self._task
        checker: dict[str, Any] = {"timeout_seconds": self._said.test_seconds}
        if self._assurance != "isolated":
            checker["assurance"] = self._assurance
        shown = {path: file for path, file in task.files.items() if path.startswith("tests/")}
        found: dict[str, Any] = {}
        if _TEST in task.files:
            checker |= {"source": "script", "reward": True} | self._reference(_TEST, "tests/test.sh")
            first = {_TEST}
        elif _OUTPUTS in task.files:
            checker |= {"source": "pytest"} | self._reference(_OUTPUTS, _OUTPUTS)
            first = {_OUTPUTS}
            if _RUN in task.files:
                found["run_tests"] = self._reference(_RUN, f"tests/{_RUN}")
        else:
            raise CannotConvert("has no tests that are known", f"neither {_TEST} nor {_OUTPUTS}")
        found["checker"] = checker
        others = [self._reference(path, path) for path in sorted(shown.keys() - first)]
        return found | ({"test_files": others} if others else {})

    def _reference(self, path: str, mount: str) -> dict[str, Any]:
        file = self._task.files[path]
        place = f"{self._task.path or self._task.name}/{path}"
        self.files.append(NewFile("hidden", place, file, file.executable))
        return {"path": place, "mount": mount}


def _reference(task: TaskDirectory) -> tuple[dict[str, Any], list[NewFile]]:
    """The solution, a script that is run where an agent would be."""
    top = task.path or task.name
    for path, shown in (("solution/solve.sh", "solution"), ("solution.sh", "solution.sh")):
        if path in task.files:
            held = {one: file for one, file in task.files.items() if one == path or one.startswith("solution/")}
            files = [NewFile("hidden", f"{top}/{one}", file, file.executable) for one, file in held.items()]
            return {"reference_script": {"path": f"{top}/{shown}"}}, files
    return {}, []


def _reference_notes(task: TaskDirectory, reference: Mapping[str, Any]) -> tuple[str, ...]:
    if reference:
        return ()
    why = "; solution.yaml is no script" if "solution.yaml" in task.files else ""
    return (f"has no solution that could be tried{why}",)


def _limits(said: TaskFile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if said.agent_seconds is not None:
        found["timeout_seconds"] = said.agent_seconds
    if said.resources:
        found["resources"] = dict(said.resources)
    if said.domains:
        found["network"] = {"allowed_domains": list(said.domains)}
    return found


HARBOR = TaskDirectories(
    "harbor", "Harbor: task directories (task.toml, instruction.md, environment/, tests/, solution/)"
)
TERMINAL_BENCH = TaskDirectories(
    "terminal-bench", "Terminal-Bench: task directories (task.yaml, Dockerfile, tests/, run-tests.sh, solution.sh)"
)
