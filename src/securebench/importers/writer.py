"""Writes a pack. The bytes depend on nothing but what it is given: no time, no path, no order of a dictionary."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from securebench import _fs, _json
from securebench._paths import relative_path
from securebench.benchmark_pack import MAX_ROW_BYTES, RowChecker
from securebench.importers.base import CannotConvert, NewFile, PackRow
from securebench.importers.ids import Ids
from securebench.importers.sources.base import SourceFile
from securebench.pack_schema import Defaults, Manifest

MANIFEST, TASKS = "manifest.yaml", "tasks.jsonl"
_ROOTS = {"public": "assets", "hidden": "hidden"}


class PackWriter:
    """Writes into an empty directory: rows one at a time, the manifest at the end. Use as a context manager.

    A row that would not load, or a file that it may not have, is refused and leaves nothing behind but files that
    another row may have named already. Rows whose id is in `without` get it, and are not written."""

    def __init__(
        self, directory: Path, pack_id: str, family: str | None, without: frozenset[str] = frozenset()
    ) -> None:
        self.directory = directory
        self.rows = 0
        self.excluded = 0
        self.renamed = 0  # rows that could not keep the name they had
        manifest = Manifest(id=pack_id, version=1, defaults=Defaults(family=family))
        self._manifest = manifest
        self._checker = RowChecker(manifest, TASKS)
        self._ids = Ids()
        self._without = without
        self._files: dict[str, bytes] = {}
        self._stack = ExitStack()
        self._tasks: BinaryIO | None = None
        self._root = -1

    def __enter__(self) -> PackWriter:
        self._root = self._stack.enter_context(_fs.open_directory(self.directory))
        self._tasks = self._stack.enter_context((self.directory / TASKS).open("xb"))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def add(self, row: PackRow) -> str:
        """Write a row; returns its id. Raises CannotConvert for one that no pack can have."""
        assert self._tasks is not None  # noqa: S101 — inside the `with`
        given = self._ids.free(row.id)
        try:
            raw = _json.dumps(row.as_json() | {"id": given}).encode()
        except (ValueError, TypeError, RecursionError):
            raise CannotConvert("holds a value that is not plain JSON") from None
        if len(raw) > MAX_ROW_BYTES:
            raise CannotConvert(f"makes a row of more than {MAX_ROW_BYTES} bytes", f"{len(raw)} bytes")
        self._checker.first_line.clear()  # ids are unique by our own rule
        checked = self._checker.check(raw, self.rows + 1)
        if isinstance(checked, list):
            first = checked[0]
            raise CannotConvert(f"{first.field}: {first.message}" if first.field else first.message, field=first.field)
        if given in self._without:
            self._ids.give(row.id, given)
            self.excluded += 1
            return given
        for file in row.files:
            self._write(file)
        self._tasks.write(raw + b"\n")
        self._ids.give(row.id, given)
        self.rows += 1
        self.renamed += given != row.id
        return given

    def finish(self, source: Mapping[str, Any]) -> None:
        """Write the manifest, with what is said of the source. Keys that say nothing are left out."""
        assert self._tasks is not None  # noqa: S101 — inside the `with`
        self._tasks.flush()
        os.fsync(self._tasks.fileno())
        whole: dict[str, Any] = {"id": self._manifest.id, "version": self._manifest.version}
        if self._manifest.defaults.family is not None:
            whole["defaults"] = {"family": self._manifest.defaults.family}
        whole["source"] = {key: value for key, value in source.items() if value not in (None, {}, "")}
        (self.directory / MANIFEST).write_bytes("".join(f"{line}\n" for line in _yaml_lines(whole)).encode())

    def _write(self, file: NewFile) -> None:
        try:
            path = PurePosixPath(_ROOTS[file.lane]) / relative_path(file.path)
        except ValueError as error:
            raise CannotConvert("names a file that a pack cannot have", str(error)) from None
        data: bytes | int
        with ExitStack() as stack:
            if isinstance(file.data, SourceFile):
                opened = stack.enter_context(file.data.open())
                digest, data = _digest(opened), opened.fileno()
            else:
                digest, data = hashlib.sha256(file.data).digest(), file.data
            known = self._files.setdefault(str(path), digest + bytes([file.executable]))
            if known != digest + bytes([file.executable]):
                raise CannotConvert("names a file that another row has with other bytes", str(path))
            if (self.directory / path).exists():
                return
            try:
                _fs.write_new(self._root, path, data, 0o755 if file.executable else 0o644)
            except (_fs.UnsafeEntry, OSError) as error:
                raise CannotConvert("names a file that cannot be written", f"{path}: {error}") from None


def _digest(file: BinaryIO) -> bytes:
    """Of an open file, whose descriptor is at its beginning again afterwards."""
    sha = hashlib.sha256()
    while chunk := file.read(_fs.CHUNK):
        sha.update(chunk)
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    return sha.digest()


def _yaml_lines(value: Mapping[str, Any], indent: str = "") -> list[str]:
    """A mapping as YAML that reads like one: nested, every scalar as JSON, which YAML takes."""
    lines = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            lines += [f"{indent}{key}:", *_yaml_lines(item, f"{indent}  ")]
        else:
            lines.append(f"{indent}{key}: {json.dumps(item, ensure_ascii=False)}")
    return lines
