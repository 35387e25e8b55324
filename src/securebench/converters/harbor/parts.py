"""What lies in a file or directory of a pack, and the parts of one that another does not have already."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from securebench import _fs
from securebench._canonical import digest_value
from securebench.benchmark_pack import MAX_ASSET_ENTRIES
from securebench.errors import IntegrityError
from securebench.resources import PackFile

_KIND = {True: "exec", False: "file"}


@dataclass(frozen=True, slots=True)
class Part:
    """One entry. `sha` is None for a directory."""

    path: PurePosixPath
    executable: bool
    sha: str | None

    def line(self, top: PurePosixPath) -> list[object]:
        """As `_fs.tree_digest` has it, of a tree that begins at `top`."""
        shown = str(self.path.relative_to(top))
        return [shown, "dir"] if self.sha is None else [shown, _KIND[self.executable], self.sha]


def parts_of(file: PackFile) -> list[Part]:
    """Directories come before what they hold. Raises `_fs.UnsafeEntry`, and IntegrityError when it is not what the pack
    was loaded with."""
    found = []
    with _fs.open_directory(file.root) as root:
        for entry in _fs.walk(root, file.path, MAX_ASSET_ENTRIES):
            sha = None if entry.is_dir else _sha(entry.descriptor)
            found.append(Part(entry.path, entry.executable, sha))
    if digest_value([part.line(PurePosixPath()) for part in found]) != file.digest:
        raise IntegrityError(f"asset {file.path} changed since the pack was loaded; start again")
    return found


def empty_directories(files: Iterable[PackFile]) -> list[str]:
    """Where directories without any file would appear."""
    found = []
    for file in files:
        parts = parts_of(file)
        filled = {parent for part in parts if part.sha is not None for parent in (part.path, *part.path.parents)}
        found += [str(file.mount / part.path) for part in parts if part.sha is None and part.path not in filled]
    return found


def changed_parts(reference: PackFile, assets: Iterable[PackFile]) -> tuple[dict[PurePosixPath, PackFile], list[str]]:
    """What of a reference is not, byte for byte, at the same place among the assets, as few parts by their place in it;
    and the places of what is."""
    given = {(asset.mount / part.path, part.executable, part.sha) for asset in assets for part in parts_of(asset)}
    parts = parts_of(reference)
    same = {part.path for part in parts if part.sha is not None and (part.path, part.executable, part.sha) in given}
    apart = same | {parent for path in same for parent in path.parents}
    trees: dict[PurePosixPath, list[Part]] = {}
    for part in parts:
        top = next((path for path in (part.path, *part.path.parents) if path in trees), part.path)
        if part.path not in apart:
            trees.setdefault(top, []).append(part)
    return {top: _tree(reference, top, beneath) for top, beneath in trees.items()}, sorted(map(str, same))


def _tree(file: PackFile, top: PurePosixPath, parts: list[Part]) -> PackFile:
    digest = digest_value([part.line(top) for part in parts])
    return replace(file, path=file.path / top, mount=file.mount / top, digest=digest)


def _sha(descriptor: int) -> str:
    sha = hashlib.sha256()
    for chunk in _chunks(descriptor):
        sha.update(chunk)
    return sha.hexdigest()


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, _fs.CHUNK):
        yield chunk
