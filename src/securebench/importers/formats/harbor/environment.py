"""Where a task runs: the image, the working directory, and the files that agents find there."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from securebench.importers.base import CannotConvert, NewFile
from securebench.importers.formats.harbor.building import build_image, image_name
from securebench.importers.formats.harbor.compose import Service, read_compose
from securebench.importers.formats.harbor.directory import TaskDirectory, text_of
from securebench.importers.formats.harbor.dockerfile import Dockerfile, NotADockerfile, files_of, read_dockerfile
from securebench.importers.formats.harbor.private import Secrets, is_private
from securebench.importers.formats.harbor.task_file import TaskFile
from securebench.importers.sources.base import SourceFile
from securebench.sandboxes._docker.client import Client

_TAKEN = {"tests", "logs", "solution", "securebench", "proc", "sys", "dev"}
"""What sandboxes have at their root for themselves, for tests and for solutions."""


@dataclass(frozen=True, slots=True)
class Place:
    """`environment` of the row, the public files with their mounts, and what to say about them."""

    environment: Mapping[str, Any]
    assets: tuple[Mapping[str, Any], ...] = ()
    files: tuple[NewFile, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Images:
    """What the operator says about images. `builder` builds them, where it is given."""

    template: str = ""
    workdir: str = ""
    builder: Client | None = None


@dataclass(frozen=True, slots=True)
class _Context:
    """What a Dockerfile can copy: the files beneath a folder of the task, where tests and solution may lie, too."""

    folder: str
    files: Mapping[str, SourceFile]
    dockerfile: str
    secrets: Secrets

    @property
    def ignores(self) -> str | None:
        """The file that says what a build does not see."""
        names = (f"{self.dockerfile}.dockerignore", ".dockerignore")
        return next((name for name in names if name in self.files), None)

    def is_private(self, path: str) -> bool:
        return is_private(self.folder, path)

    def refuse_private(self, dockerfile: Dockerfile) -> None:
        """Whoever copies everything may not have meant it; whoever names the tests did. Raises CannotConvert."""
        named = [copy.source for copy in dockerfile.copies if self.is_private(copy.source)]
        if named:
            raise CannotConvert("its Dockerfile puts its tests or solution where agents are", named[0])


def place_of(task: TaskDirectory, said: TaskFile, images: Images, secrets: Secrets) -> Place:
    """Raises CannotConvert, SandboxError."""
    compose = task.compose()
    service = Service(None) if compose is None else read_compose(task.files[compose].read(), compose)
    folder = posixpath.normpath(posixpath.join(task.environment, service.context))
    context = _Context(folder, task.beneath(folder), posixpath.normpath(service.dockerfile), secrets)
    dockerfile = _dockerfile(context)
    named = images.template.replace("{task_id}", task.name.lower()) or said.image or service.image
    if dockerfile is None and not named:
        raise CannotConvert("has no image", f"neither {posixpath.join(folder, context.dockerfile)} nor the name of one")
    workdir = _workdir(said.workdir or service.workdir or (dockerfile.workdir if dockerfile else ""), images)
    if named or dockerfile is None:
        if dockerfile is not None and not images.template:
            _refuse_published(dockerfile, context)
        place = Place({"image": named, "workdir": workdir, "materialize_workdir_from_image": True})
    elif dockerfile.needs_build or context.ignores:
        place = _built(task, dockerfile, context, workdir, images)
    else:
        place = _without_build(task, dockerfile, context, workdir)
    if dockerfile is not None and dockerfile.entrypoint:
        return replace(place, notes=(*place.notes, "its image has an ENTRYPOINT, which nobody starts here"))
    return place


def _dockerfile(context: _Context) -> Dockerfile | None:
    file = context.files.get(context.dockerfile)
    try:
        return None if file is None else read_dockerfile(text_of(file))
    except NotADockerfile as error:
        raise _unreadable(error) from None


def _unreadable(error: NotADockerfile) -> CannotConvert:
    return CannotConvert("its Dockerfile cannot be read", str(error))


def _workdir(stated: str, images: Images) -> str:
    """The task's, unless it says none; `/` itself cannot be one."""
    workdir = images.workdir if stated in ("", "/") else stated
    if not workdir:
        detail = "it is / itself" if stated else "no WORKDIR is stated"
        raise CannotConvert("its working directory is not known", f"{detail}; say one with --set workdir=/app")
    if workdir.strip("/").partition("/")[0] in _TAKEN:
        raise CannotConvert("its working directory is where something else lies", workdir)
    return workdir


def _refuse_published(dockerfile: Dockerfile, context: _Context) -> None:
    """An image that was built elsewhere holds what its Dockerfile copies. Raises CannotConvert where that is tests or
    solution; an operator who names images knows what is in them."""
    unclear = any(why.startswith(("COPY", "ADD")) for why in dockerfile.needs_build)
    copied = set(context.files) if unclear else {path for path, _ in _copied(dockerfile, context).values()}
    private = sorted(path for path in copied if context.is_private(path))
    if private:
        raise CannotConvert("its Dockerfile puts its tests or solution where agents are", private[0])
    context.secrets.kept_from({path: context.files[path] for path in sorted(copied)})


def _copied(dockerfile: Dockerfile, context: _Context) -> dict[str, tuple[str, bool]]:
    """Where files of the context go, which of them, and whether they are executable there. Raises CannotConvert."""
    modes = {path: file.executable for path, file in context.files.items()}
    placed: dict[str, tuple[str, bool]] = {}
    try:
        for copy in dockerfile.copies:
            placed |= files_of(copy, modes)
    except NotADockerfile as error:
        raise _unreadable(error) from None
    return placed


def _without_build(task: TaskDirectory, dockerfile: Dockerfile, context: _Context, workdir: str) -> Place:
    """The image it starts from, and the files it copies as assets."""
    placed = _copied(dockerfile, context)
    context.refuse_private(dockerfile)
    private = {target for target, (path, _) in placed.items() if context.is_private(path)}
    assets, files, shown = [], [], {}
    for target in sorted(placed.keys() - private):
        path, executable = placed[target]
        if not target.startswith(f"{workdir}/"):
            raise CannotConvert("its Dockerfile copies files outside its working directory", f"{target}; use --build")
        mount = target.removeprefix(f"{workdir}/")
        shown[mount] = context.files[path]
        place = f"{task.path or task.name}/{mount}"
        assets.append({"path": place, "mount": mount, "read_only": False})
        files.append(NewFile("public", place, context.files[path], executable))
    notes = context.secrets.kept_from(shown)
    told = f"its Dockerfile copies tests or solution to where agents are; {len(private)} files are left out"
    environment = {"image": dockerfile.base, "workdir": workdir}
    return Place(environment, tuple(assets), tuple(files), ((told,) if private else ()) + notes)


def _built(task: TaskDirectory, dockerfile: Dockerfile, context: _Context, workdir: str, images: Images) -> Place:
    """An image that must be there; built here and now where that was asked for."""
    context.refuse_private(dockerfile)
    usable = {path: file for path, file in context.files.items() if not context.is_private(path)}
    notes = context.secrets.kept_from(usable)
    image = image_name(task.name, usable, context.dockerfile)
    environment = {"image": image, "workdir": workdir, "materialize_workdir_from_image": True}
    if images.builder is not None:
        build_image(images.builder, image, usable, context.dockerfile)
        return Place(environment, notes=notes)
    why = dockerfile.needs_build[0] if dockerfile.needs_build else f"there is a {context.ignores}"
    return Place(
        environment,
        notes=(
            *notes,
            f"needs the image {image}, which must be built: {why}; import with --build",
        ),
    )
