"""Where the repository of a `repo_patch` task comes from: a directory or bundle of the pack, or its image.

Whatever the source, only files are taken over. No `.git` of anybody else ever reaches an agent, nor the history of
another tool: an image's is left out, one among the pack's files is refused. Left out as well are caches of tools, which
are not part of a source tree and may have been made from hidden tests."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from securebench import _fs
from securebench._paths import canonical_key, relative_path
from securebench.errors import PackError
from securebench.resources import PackFile, ResourceView, Visibility
from securebench.workspaces._git.bundle import BundleFile, is_bundle, open_bundle
from securebench.workspaces.limits import WorkspaceBudget

REPO, BASE_COMMIT = "repo", "base_commit"
GIT_DIRECTORY = ".git"
HISTORIES = frozenset(
    map(canonical_key, (GIT_DIRECTORY, ".hg", ".svn", ".bzr", ".jj", ".sl", "_darcs", ".fslckout", "_FOSSIL_"))
)
TOOL_CACHES = frozenset(
    (
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        "htmlcov",
        ".nyc_output",
    )
)
_DERIVED = re.compile(r".*\.py[co]|\.coverage(?:\..+)?|\.testmondata.*")
_MAX_TARGET = 4095


def repository_asset(view: ResourceView, image: str | None) -> PackFile | None:
    """The public asset that `input.repo` names by its path or mount; None where the image's directory is meant.

    Raises PackError when it names no asset and there is no image."""
    repo = view.values().get(REPO)
    assets = [file for r in view if r.is_asset and r.visibility is Visibility.PUBLIC for file in r.files]
    for asset in assets:
        if repo in (str(asset.path), str(asset.mount)):
            return asset
    if image is None:
        names = ", ".join(str(asset.path) for asset in assets) or "none"
        raise PackError(f"input.repo {repo!a} names no public asset (there are: {names}), and the task has no image")
    return None


def payload_at_root(payload: dict[str, Any], asset: PackFile) -> dict[str, Any]:
    """The payload, saying that the repository is the working directory itself."""
    assets = [
        {**item, "path": ".", "read_only": False} if item.get("path") == str(asset.mount) else item
        for item in payload.get("assets", ())
    ]
    return {**payload, "assets": assets}


def is_git_name(name: str) -> bool:
    """Whether some file system would take this name for `.git`."""
    return canonical_key(name) == (GIT_DIRECTORY,)


def is_history(name: str) -> bool:
    """Whether a version control tool keeps what it knows of other commits under this name."""
    return canonical_key(name) in HISTORIES


def is_tool_cache(name: str, is_dir: bool) -> bool:
    return name in TOOL_CACHES if is_dir else _DERIVED.fullmatch(name) is not None


def not_source(path: bytes, is_dir: bool) -> str | None:
    """Why an entry of a directory or image is not part of the repository, or None."""
    name = os.fsdecode(path.rpartition(b"/")[2])
    if is_history(name):
        return "a git directory" if is_git_name(name) else "the history of a version control tool"
    return "a cache of a tool" if is_tool_cache(name, is_dir) else None


def check_no_history(directory: Path, shown: PurePosixPath) -> None:
    """Raises PackError for a `.git`, or what other tools have for it, anywhere in a directory of the pack."""
    for parent, folders, files in os.walk(directory):
        for name in (*folders, *files):
            if is_history(name):
                place = Path(parent, name).relative_to(directory)
                raise PackError(f"asset {shown} holds {place}; give the files alone, or a git bundle")


def unpack_bundle(bundle: Path, shown: PurePosixPath, base_commit: str, target: Path, budget: WorkspaceBudget) -> None:
    """Write the files of one commit of a bundle into an empty directory of ours. Raises PackError."""
    try:
        if not is_bundle(bundle):
            raise ValueError("is neither a directory nor a git bundle")
        with _fs.open_directory(target) as root:
            for file in open_bundle(bundle).files(base_commit):
                budget.take(len(file.data))
                _write(root, file)
    except (ValueError, FileExistsError, NotADirectoryError) as error:
        raise PackError(f"asset {shown} {error}") from error


def _write(root: int, file: BundleFile) -> None:
    try:
        path = relative_path(file.path.decode())
    except ValueError as error:
        raise ValueError(f"holds {file.path[:200]!a}, which cannot be a file here: {error}") from None
    if any(map(is_git_name, path.parts)):
        raise ValueError(f"holds {path}; a commit cannot")
    if file.is_directory:
        with _fs.make_directories(root, path):
            return
    if not file.is_link:
        _fs.write_new(root, path, file.data, 0o755 if file.executable else 0o644)
        return
    if not file.data or len(file.data) > _MAX_TARGET or b"\0" in file.data:
        raise ValueError(f"holds {path}, a link with an impossible target")
    with _fs.make_directories(root, path.parent) as parent:
        os.symlink(file.data, os.fsencode(path.name), dir_fd=parent)
