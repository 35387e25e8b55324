"""One task's directory: which of its files are what, in either layout."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from securebench.importers.base import CannotConvert
from securebench.importers.sources.base import Source, SourceFile

TOML, YAML = "task.toml", "task.yaml"
COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
_TEXT = 4 * 2**20


@dataclass(frozen=True, slots=True)
class TaskDirectory:
    """Files by their path within the directory. `path` is the directory's own, within the source; empty where the
    source is one task."""

    path: str
    name: str
    files: Mapping[str, SourceFile]

    @property
    def is_harbor(self) -> bool:
        return TOML in self.files

    @property
    def place(self) -> str:
        return posixpath.join(self.path, TOML if self.is_harbor else YAML)

    @property
    def environment(self) -> str:
        """Where the Dockerfile is: Harbor keeps it apart from tests and solution, Terminal-Bench does not."""
        return "environment" if self.is_harbor else "."

    def beneath(self, folder: str) -> dict[str, SourceFile]:
        """The files in a folder, by their path within it."""
        if folder in ("", "."):
            return dict(self.files)
        prefix = f"{posixpath.normpath(folder)}/"
        return {path.removeprefix(prefix): file for path, file in self.files.items() if path.startswith(prefix)}

    def text(self, path: str) -> str:
        """Raises CannotConvert where it is missing, too large or no text."""
        file = self.files.get(path)
        if file is None:
            raise CannotConvert(f"{path} is missing")
        return text_of(file)

    def compose(self) -> str | None:
        """The path of its compose file."""
        paths = (posixpath.normpath(posixpath.join(self.environment, name)) for name in COMPOSE)
        return next((path for path in paths if path in self.files), None)


def text_of(file: SourceFile) -> str:
    """Raises CannotConvert."""
    name = posixpath.basename(file.path)
    if file.size > _TEXT:
        raise CannotConvert(f"{name} is too large", f"{file.size} bytes")
    try:
        return file.read(_TEXT).decode()
    except UnicodeDecodeError:
        raise CannotConvert(f"{name} is no text") from None


def task_directories(source: Source) -> Iterator[TaskDirectory]:
    """Every directory with a task file that is not within another one, in the order of the source."""
    folders = {posixpath.dirname(file.path) for file in source.files if posixpath.basename(file.path) in (TOML, YAML)}
    tops = sorted(folder for folder in folders if not any(_within(folder, other) for other in folders))
    found: dict[str, dict[str, SourceFile]] = {top: {} for top in tops}
    for file in source.files:
        folder = posixpath.dirname(file.path)
        while folder not in found and folder:
            folder = posixpath.dirname(folder)
        if folder in found:
            found[folder][posixpath.relpath(file.path, folder) if folder else file.path] = file
    for top, files in found.items():
        yield TaskDirectory(top, posixpath.basename(top) or source.name, files)


def _within(folder: str, other: str) -> bool:
    return folder != other and (not other or folder.startswith(f"{other}/"))
