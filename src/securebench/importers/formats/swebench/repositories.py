"""Repositories from a directory of the operator's, where rows need no image.

| In the directory                                 | What it is                                                   |
|--------------------------------------------------|--------------------------------------------------------------|
| `INSTANCE.bundle`, `OWNER__NAME.bundle`          | a git bundle that holds the row's base commit                |
| `INSTANCE/`                                      | the files of that row's base commit                          |
| `OWNER__NAME/`                                   | the same, where all rows of the repository have one commit   |

`OWNER/NAME` stands for `OWNER__NAME`. Of a bundle only the base commit goes into the pack, as a bundle of its own: no
later commit is in there, and reading it takes no time. Git runs nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from securebench.errors import ConfigError
from securebench.importers.base import CannotConvert, NewFile
from securebench.importers.sources.opening import open_tree
from securebench.workspaces._git.bundle import Bundle, is_bundle, one_commit_bundle, open_bundle

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)
_SUFFIX = ".bundle"


@dataclass(frozen=True, slots=True)
class Repository:
    """The asset that `input.repo` names, and its files."""

    asset: str
    files: tuple[NewFile, ...]


@dataclass
class Repositories:
    """Finds the repository of each row. What it gives can be read as long as it is open."""

    directory: Path
    _stack: ExitStack
    _bundles: dict[Path, Bundle] = field(default_factory=dict)
    _commits: dict[Path, str] = field(default_factory=dict)  # of trees that are named after their repository

    def find(self, instance: str, repo: str, base_commit: str) -> Repository:
        """Raises CannotConvert."""
        for name in (instance, repo.replace("/", "__"), repo):
            if not all(map(_NAME.fullmatch, name.split("/"))) or name.count("/") > 1:
                raise CannotConvert("names a repository or instance that cannot be looked for", repr(name[:100]))
            place = self.directory / name
            bundle = place.with_name(place.name + _SUFFIX)
            if bundle.is_file():
                return self._from_bundle(bundle, instance, base_commit)
            if place.is_dir():
                if name != instance:
                    self._check_commit(place, base_commit)
                return self._from_tree(place, instance)
        raise CannotConvert(f"its repository is not in {self.directory.name}", f"neither {instance} nor {repo}")

    def _from_bundle(self, path: Path, instance: str, base_commit: str) -> Repository:
        try:
            if path not in self._bundles:
                if not is_bundle(path):
                    raise ValueError("is no git bundle")
                self._bundles[path] = open_bundle(path)
            data = one_commit_bundle(self._bundles[path], base_commit)
        except ValueError as error:
            raise CannotConvert("its git bundle cannot be used", f"{path.name} {error}") from None
        asset = f"repositories/{instance}{_SUFFIX}"
        return Repository(asset, (NewFile("public", asset, data),))

    def _from_tree(self, path: Path, instance: str) -> Repository:
        if (path / ".git").exists():
            made = f"git -C {path.name} bundle create ../{path.name}{_SUFFIX} --all"
            raise CannotConvert("its repository is a clone", f"make a bundle of it: {made}; then move the clone away")
        try:
            source = self._stack.enter_context(open_tree(path))
        except ConfigError as error:
            raise CannotConvert("its repository cannot be read", str(error)) from None
        asset = f"repositories/{instance}"
        return Repository(
            asset,
            tuple(NewFile("public", f"{asset}/{file.path}", file, file.executable) for file in source.files),
        )

    def _check_commit(self, path: Path, base_commit: str) -> None:
        known = self._commits.setdefault(path, base_commit)
        if known != base_commit:
            detail = f"{path.name} stands for {known[:12]} already; name directories after instances, or give a bundle"
            raise CannotConvert("its repository has another base commit here", detail)


@contextmanager
def open_repositories(directory: Path) -> Iterator[Repositories]:
    """Raises ConfigError."""
    if not directory.is_dir():
        raise ConfigError(f"{directory}: is no directory of repositories")
    with ExitStack() as stack:
        yield Repositories(directory, stack)
