"""A04: the repaired code is on disk already, as a copy, in an archive, or as a later release. Pure."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from securebench.audit.pack.information import SURE, TELLING, bits, plain_lines

ARCHIVES = (".whl", ".zip", ".egg")
MOST_MEMBERS, MOST_MEMBER_BYTES, MOST_ARCHIVE_BYTES = 5000, 2**21, 2**26
ENOUGH = 0.8
"""The part of the added lines that makes a file a repaired one."""
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_RELEASE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*?)-v?(?P<version>\d{1,9}(?:\.\d{1,9})*)(?P<rest>[^/]*)")
_RELEASE_ENDS = (".dist-info", ".egg-info", ".whl", ".egg", ".zip", ".tar.gz", ".tgz", ".tar.bz2")


@dataclass(frozen=True)
class Repair:
    """What a patch makes of one file: the lines it adds, and each changed place as it looks afterwards."""

    path: str
    added: tuple[str, ...]
    places: tuple[str, ...]

    @cached_property
    def weight(self) -> float:
        return bits("\n".join(self.added))

    def is_in(self, text: str) -> bool:
        """Whether a text has the repair: every changed place as a whole, or nearly all of what was added."""
        lines = plain_lines(text)
        whole = "\n" + "\n".join(lines) + "\n"
        if all(f"\n{place}\n" in whole for place in self.places):
            return True
        if self.weight < SURE:
            return False
        present = set(lines)
        return sum(bits(line) for line in self.added if line in present) >= ENOUGH * sum(map(bits, self.added))


def repairs(patch: str) -> list[Repair]:
    """The repairs of a patch that are telling enough to be looked for."""
    files: dict[str, list[list[str]]] = {}
    hunks: list[list[str]] = []
    for line in patch.splitlines():
        if line.startswith("+++ "):
            hunks = files.setdefault(line[4:].partition("\t")[0].removeprefix("b/"), [])
        elif line.startswith(("--- ", "diff --git ")):
            hunks = []
        elif _HUNK.match(line):
            hunks.append([])
        elif hunks and line[:1] in ("+", " ", "-", ""):
            hunks[-1].append(line or " ")
    found = (_repair(path, hunks) for path, hunks in files.items())
    return [repair for repair in found if repair.added and bits("\n".join(repair.places)) >= TELLING]


def _repair(path: str, hunks: list[list[str]]) -> Repair:
    added = [line[1:] for hunk in hunks for line in hunk if line.startswith("+")]
    after = ["\n".join(plain_lines("\n".join(line[1:] for line in hunk if line[0] != "-"))) for hunk in hunks]
    changed = [place for place, hunk in zip(after, hunks, strict=True) if any(line[0] == "+" for line in hunk)]
    return Repair(path, tuple(plain_lines("\n".join(added))), tuple(place for place in changed if place))


def repaired_copies(patch: str, files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, str]]:
    """The files, by path, that hold a repair of the patch already, each with the file that the patch repairs. Archives
    that can be looked into are."""
    wanted = repairs(patch)
    for path, data in files if wanted else ():
        for inner, text in _texts(path, data):
            for repair in wanted:
                if repair.is_in(text):
                    yield inner, repair.path


def _texts(path: str, data: bytes) -> Iterator[tuple[str, str]]:
    if not path.lower().endswith(ARCHIVES):
        yield path, data.decode("utf-8", "replace")
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            room = MOST_ARCHIVE_BYTES
            for info in archive.infolist()[:MOST_MEMBERS]:
                room -= info.file_size
                if info.is_dir() or info.file_size > MOST_MEMBER_BYTES or room < 0:
                    continue
                with archive.open(info) as member:
                    yield f"{path}!{info.filename}", member.read(MOST_MEMBER_BYTES).decode("utf-8", "replace")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        return  # damaged, encrypted or of a kind nobody can import either


def later_releases(package: str, version: str, paths: Iterable[str]) -> Iterator[str]:
    """The paths that are named like a later release of a package."""
    base = _numbers(version)
    wanted = _canonical(package)
    for path in paths:
        name = path.rpartition("/")[2]
        match = _RELEASE.match(name) if name.endswith(_RELEASE_ENDS) else None
        if match and _canonical(match["name"]) == wanted and _numbers(match["version"]) > base:
            yield path


def project_release(files: Mapping[str, str]) -> tuple[str, str] | None:
    """Name and version that a source tree gives itself in `pyproject.toml` or `setup.cfg`, if it does so plainly."""
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        text = files.get(path, "")
        name = re.search(r"""(?m)^\s*name\s*=\s*["']?([A-Za-z0-9][A-Za-z0-9._-]*)""", text)
        version = re.search(r"""(?m)^\s*version\s*=\s*["']?(\d{1,9}(?:\.\d{1,9})*)""", text)
        if name and version:
            return name[1], version[1]
    return None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
