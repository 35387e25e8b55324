"""Rows of tables, one at a time: JSONL, JSON, CSV, TSV and Parquet, each of them packed or not.

A line that cannot be read is given as such, with its place; what makes the rest of a file unreadable is an error."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from securebench import _json
from securebench._schema import found
from securebench.errors import ConfigError
from securebench.importers.base import Place, Record
from securebench.importers.sources.base import Source, SourceFile
from securebench.importers.sources.spool import unpacked

MAX_LINE = 64 * 2**20
MAX_DOCUMENT = 512 * 2**20
PACKED = (".gz", ".xz", ".bz2", ".zst")
_SPLITS = {name: name for name in ("train", "test", "dev")} | dict.fromkeys(
    ("val", "valid", "validation"), "validation"
)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no record, and why."""

    place: Place
    message: str


Records = Iterator[Record | Unreadable]
Reader = Callable[[BinaryIO, str, tuple[str, ...]], Records]


def kind_of(path: str) -> str:
    """The suffix that says how a file is to be read, without that of its packing: `.jsonl`, or nothing."""
    lower = path.lower()
    for suffix in PACKED:
        lower = lower.removesuffix(suffix)
    return f".{lower.rpartition('.')[2]}" if "." in lower.rpartition("/")[2] else ""


def table_files(source: Source) -> tuple[SourceFile, ...]:
    """The files of a source that hold tables, by their names. Raises ConfigError where there is none, and where they
    are of several splits: which of them is meant is not for us to guess."""
    files = tuple(file for file in source.files if kind_of(file.path) in READERS)
    splits = {split for file in files for split in split_of(file.path)}
    if len(splits) > 1:
        raise ConfigError(
            f"{source.name}: holds several splits ({', '.join(sorted(splits))}); choose files with --only PATTERN, "
            f"such as --only '*{min(splits)}*'"
        )
    if files:
        return files
    names = ", ".join(file.path for file in source.files[:5])
    raise ConfigError(
        f"{source.name}: holds no table; expected a file that ends with {', '.join(READERS)}"
        + (f"; found {names}" if names else "; it is empty")
    )


def split_of(path: str) -> set[str]:
    """The splits that a path names."""
    return {_SPLITS[word] for word in re.split(r"[^a-z]+", path.lower()) if word in _SPLITS}


def read_records(source: Source, columns: tuple[str, ...] = ()) -> Records:
    """Every record of every table of a source, in order. `columns` are those of a CSV file whose first line does not
    hold the last of these names. Raises ConfigError."""
    for file in table_files(source):
        with file.open() as stored, unpacked(stored, file.path) as plain:
            yield from READERS[kind_of(file.path)](plain, file.path, columns)


def _jsonl(file: BinaryIO, name: str, _: tuple[str, ...]) -> Records:
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            raise ConfigError(f"{name}:{number}: line is longer than {MAX_LINE} bytes")
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        if not raw.strip():
            continue
        place = Place(name, number)
        try:
            value = _json.loads(raw)
        except _json.JsonError as error:
            yield Unreadable(place, str(error))
            continue
        yield _record(place, value)


def _json_document(file: BinaryIO, name: str, _: tuple[str, ...]) -> Records:
    data = file.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        raise ConfigError(f"{name}: is larger than {MAX_DOCUMENT} bytes; write it as JSON lines")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        value = _json.loads(data)
    except _json.JsonError as error:
        hint = "; it looks like JSON lines, which are to be named .jsonl" if _is_json(data.partition(b"\n")[0]) else ""
        raise ConfigError(f"{name}: {error}{hint}") from error
    if isinstance(value, dict):
        yield Record(Place(name), value)
        return
    if not isinstance(value, list):
        raise ConfigError(f"{name}: expected an object or a list of them, found {found(value)}")
    for number, item in enumerate(value, 1):
        yield _record(Place(name, number), item)


def _is_json(data: bytes) -> bool:
    with suppress(_json.JsonError):
        _json.loads(data)
        return True
    return False


def _separated(delimiter: str) -> Reader:
    def read(file: BinaryIO, name: str, columns: tuple[str, ...]) -> Records:
        csv.field_size_limit(MAX_LINE)
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            yield from _table(csv.reader(text, delimiter=delimiter, strict=True), name, columns)
        finally:
            text.detach()

    return read


def _is_text(text: str) -> bool:
    """Whether everything in it was UTF-8."""
    return text.isascii() or not any("\udc80" <= char <= "\udcff" for char in text)


def _is_row(first: list[str], columns: tuple[str, ...]) -> bool:
    """Whether a first line is a row of a file without names, and not their names: its last cell is a key, which names
    one of the columns between."""
    names = {cell.strip().lower() for cell in first}
    is_key = len(first) == len(columns) and first[-1].strip() in columns[1:-1]
    return is_key and not names & {columns[0], columns[-1]}


def _table(lines: Any, name: str, columns: tuple[str, ...]) -> Records:
    """`lines` is a reader of the module csv."""
    first, _ = _next(lines, name)
    if first is None:
        return
    header = columns if _is_row(first, columns) else tuple(first)
    if not _is_text("".join(header)):
        raise ConfigError(f"{name}:1: is no UTF-8")
    if len(set(header)) != len(header):
        raise ConfigError(f"{name}:1: two columns have the same name")
    values, place = (first, Place(name, 1)) if header != tuple(first) else _next(lines, name)
    while values is not None:
        if len(values) != len(header) and values:
            yield Unreadable(place, f"has {len(values)} fields; there are {len(header)} columns")
        elif not _is_text("".join(values)):
            yield Unreadable(place, "is no UTF-8")
        elif values:
            yield Record(place, dict(zip(header, values, strict=True)))
        values, place = _next(lines, name)


def _next(lines: Any, name: str) -> tuple[list[str] | None, Place]:
    """The next record and where it begins, for it may go over several lines; None at the end."""
    place = Place(name, lines.line_num + 1)
    try:
        return next(lines, None), place
    except csv.Error as error:
        raise ConfigError(f"{place}: cannot be read from here on: {error}") from error


def _parquet(file: BinaryIO, name: str, _: tuple[str, ...]) -> Records:
    from securebench.importers.parquet import parquet_rows

    for number, value in enumerate(parquet_rows(file, name), 1):
        yield Record(Place(name, number), value)


def _record(place: Place, value: Any) -> Record | Unreadable:
    if not isinstance(value, Mapping):
        return Unreadable(place, f"expected an object, found {found(value)}")
    return Record(place, value)


READERS: dict[str, Reader] = {
    ".jsonl": _jsonl,
    ".json": _json_document,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".parquet": _parquet,
}
