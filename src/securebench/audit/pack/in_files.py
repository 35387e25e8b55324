"""What is hidden, looked for in files that agents get: a workspace, or the tree of an image."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from securebench import _fs
from securebench.audit.pack.derived import is_derived, stale_files
from securebench.audit.pack.hidden import Hidden
from securebench.audit.pack.information import plain_lines
from securebench.audit.pack.leaks import PLAIN, LeakSearch
from securebench.audit.pack.notes import Note
from securebench.audit.pack.repaired import ARCHIVES, later_releases, project_release, repaired_copies
from securebench.audit.report.model import Mark
from securebench.errors import ConfigError, IntegrityError, SandboxUnavailable
from securebench.images import resolve_root
from securebench.tasks import SecureBenchTask

MOST_BYTES, MOST_TREE_BYTES, MOST_TREE_FILES = 2 * 2**20, 2**28, 200_000
MOST_BINARY = 2**18
HALF = 0.5
"""The part of a hidden field that must stand in one file to be no coincidence of wording."""
_UNINTERESTING = ("proc", "sys", "dev", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/zoneinfo")
_OF_THE_SYSTEM = ("usr/lib/python", "usr/include/", "lib/", "bin/", "sbin/", "etc/")
_ROOT = ("", "0", "root", "0:0", "root:root")
Files = list[tuple[str, bytes]]
"""Paths and contents; large contents are cut."""


def tree_files(root: Path, skipped: Sequence[str] = ()) -> Iterator[tuple[str, bytes]]:
    """The regular files of a tree that nobody changes now, by path. Contents come within a budget, and without those of
    large binaries; what has none is there by its name."""
    room, count = MOST_TREE_BYTES, 0
    for parent, folders, names in os.walk(root):
        inner = Path(parent).relative_to(root).as_posix()
        folders[:] = sorted(name for name in folders if f"{inner}/{name}".removeprefix("./") not in skipped)
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_symlink() or not path.is_file() or count >= MOST_TREE_FILES:
                continue
            data = _contents(path) if room > 0 else b""
            room, count = room - len(data), count + 1
            yield (name if inner == "." else f"{inner}/{name}"), data


def _contents(path: Path) -> bytes:
    try:
        with _fs.open_named(path) as file:
            data = file.read(MOST_BYTES)
    except PermissionError:
        return b""
    plain = is_text(data) or is_derived(path.name) or path.name.lower().endswith(ARCHIVES)
    return data if plain or len(data) <= MOST_BINARY else b""


def is_text(data: bytes) -> bool:
    return b"\0" not in data[:1024]


def in_files(task: SecureBenchTask, hidden: Hidden, search: LeakSearch, files: Files) -> Iterator[Note]:
    for path, data in files:
        if (copied := hidden.copies.get(hashlib.sha256(data).hexdigest())) and path not in hidden.places:
            yield Note("A01", f"{path} is a copy of a file of {copied}", task=task.id)
        elif is_text(data):
            for leak in search.in_text(path, data.decode("utf-8", "replace")):
                if leak.sure and (leak.share >= HALF or leak.form != PLAIN):
                    yield Note("A01", str(leak), task=task.id)
    for stale in stale_files(files, hidden.tests):
        detail = f"{stale.path} was made from hidden tests" if stale.of_hidden else f"{stale.path} was made by a tool"
        yield Note("A05", detail, task=task.id, mark=Mark.FAILED if stale.of_hidden else None)


def copies_of_the_fix(task: SecureBenchTask, hidden: Hidden, files: Files) -> Iterator[Note]:
    for path, repaired in repaired_copies(hidden.gold, files) if hidden.gold else ():
        yield Note("A04", f"{path} has the repair of {repaired}", task=task.id)


def image_files(image: str) -> Files | None:
    """The tree of an image that was imported here; None where it was not."""
    try:
        return list(tree_files(resolve_root(image).rootfs, _UNINTERESTING))
    except (SandboxUnavailable, ConfigError, IntegrityError):
        return None


def expected_user(image: str, task_id: str) -> Iterator[Note]:
    """P33, once for each image."""
    try:
        if resolve_root(image).config.user in _ROOT:
            yield Note("P33", f"image {image}", task=task_id)
    except (SandboxUnavailable, ConfigError, IntegrityError):
        return


def look_at_image(task: SecureBenchTask, hidden: Hidden, tree: Files, workdir: str) -> Iterator[Note]:
    """The whole tree but the working directory, which is the workspace and is looked at as such."""
    inside = {path.removeprefix(f"{workdir}/"): data for path, data in tree if path.startswith(f"{workdir}/")}
    elsewhere = [(path, data) for path, data in tree if not path.startswith(f"{workdir}/")]
    search = LeakSearch(secret for secret in hidden.secrets if len(plain_lines(secret.text)) > 1)
    looked_at = [one for one in elsewhere if not one[0].startswith(_OF_THE_SYSTEM)]
    found = [note for note in in_files(task, hidden, search, looked_at) if note.rule != "A05" or note.mark]
    for note in (*found, *copies_of_the_fix(task, hidden, elsewhere)):  # of the rest, an image is full
        yield Note(note.rule, f"in the image: {note.detail}", task=task.id, mark=note.mark)
    sources = {path: data.decode("utf-8", "replace") for path, data in inside.items() if "/" not in path}
    if release := project_release(sources):
        for path in later_releases(*release, _entries(path for path, _ in elsewhere)):
            detail = f"in the image: {path} is a later release of {release[0]} {release[1]}"
            yield Note("A04", detail, task=task.id)


def _entries(paths: Iterable[str]) -> Iterator[str]:
    """Paths, and the directories above them, each once."""
    seen: set[str] = set()
    for path in paths:
        place = path
        while place and place not in seen:
            seen.add(place)
            yield place
            place = place.rpartition("/")[0]
