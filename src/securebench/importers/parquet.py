"""Parquet, read through DuckDB (the extra `analysis`), a few rows at a time.

A text that many rows share is stored once, so a small file can hold any number of bytes; and DuckDB has 2048 rows in
memory at once, whatever they hold. So lengths are added up first, which copies no text."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import UUID

from securebench.errors import ConfigError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

BATCH = 256
VECTOR = 2048
VECTOR_BYTES = 2**30
RATIO, RATIO_ALLOWANCE = 200, 2**30
_ZONED = "TIMESTAMP WITH TIME ZONE"
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def parquet_rows(file: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """The rows of an open file that has a descriptor, as plain values by column; bytes that are no text stay bytes.

    Raises ConfigError for what is no Parquet, and where DuckDB is missing."""
    try:
        import duckdb
    except ImportError:
        raise ConfigError(f"{name}: reading Parquet needs DuckDB: pip install 'securebench[analysis]'") from None
    connection = duckdb.connect(":memory:", config=_CONFIG)
    # The descriptor, not the name: what is read is what was hashed, also where it has no name.
    place = f"/proc/self/fd/{file.fileno()}"
    try:
        _check_sizes(connection, place, name, os.fstat(file.fileno()).st_size)
        connection.execute(f"select {_selected(connection, place)} from read_parquet(?)", [place])  # noqa: S608 — quoted
        names = [column[0] for column in connection.description or ()]
        while rows := connection.fetchmany(BATCH):
            for row in rows:
                yield {column: plain(value) for column, value in zip(names, row, strict=True)}
    except duckdb.Error as error:
        raise ConfigError(f"{name}: not Parquet that can be read: {_said(error, place)}") from error
    finally:
        connection.close()


def _said(error: Exception, place: str) -> str:
    """What DuckDB complains of, without the kind of the error and the file, which has no name for it."""
    first = str(error).splitlines()[0]
    first = re.sub(r"\A[A-Z][A-Za-z ]* Error: ", "", first)
    return re.sub(rf"(?: (?:in|of))? ?[Ff]ile ['\"]{place}['\"]", "", first).strip()[:300]


def _selected(connection: DuckDBPyConnection, place: str) -> str:
    """SQL for all columns; times of a zone as text, since DuckDB wants another library to make objects of them."""
    shape = _shape(connection, place)
    columns = zip(map(_quoted, shape.columns), map(str, shape.types), strict=True)
    texts = [f"cast({name} as {kind.replace(_ZONED, 'VARCHAR')}) as {name}" for name, kind in columns if _ZONED in kind]
    return f"* replace ({', '.join(texts)})" if texts else "*"


def _shape(connection: DuckDBPyConnection, place: str) -> DuckDBPyRelation:
    return connection.sql("select * from read_parquet($place)", params={"place": place})


def _check_sizes(connection: DuckDBPyConnection, place: str, name: str, stored: int) -> None:
    """Raises ConfigError for rows that would not fit into memory, and for a file that explodes."""
    shape = _shape(connection, place)
    sizes = [_bytes_of(_quoted(column), kind) for column, kind in zip(shape.columns, shape.types, strict=True)]
    rows = f"read_parquet(?, file_row_number=true) group by file_row_number // {VECTOR}"
    each = f"select sum({' + '.join(sizes)}) as n from {rows}"  # noqa: S608 — names of columns are quoted
    query = f"select max(n), sum(n) from ({each})"  # noqa: S608 — made above
    largest, total = connection.execute(query, [place]).fetchall()[0]
    if (largest or 0) > VECTOR_BYTES:
        raise ConfigError(
            f"{name}: {VECTOR} of its rows hold {largest} bytes; at most {VECTOR_BYTES}, write it as JSON lines"
        )
    if (total or 0) > RATIO_ALLOWANCE + RATIO * stored:
        raise ConfigError(f"{name}: unpacks to {total} bytes; at most {RATIO} to 1, write it as JSON lines")


def _bytes_of(value: str, kind: Any, depth: int = 0) -> str:
    """SQL for how long the texts of a value are, all together."""
    match kind.id:
        case "varchar":
            return f"coalesce(strlen({value}), 0)"
        case "blob":
            return f"coalesce(octet_length({value}), 0)"
        case "list" | "array":
            item = f"x{depth}"
            inner = _bytes_of(item, kind.children[0][1], depth + 1)
            return f"coalesce(list_sum([{inner} for {item} in {value}]), 0)"
        case "struct":
            return " + ".join(_bytes_of(f"{value}.{_quoted(part)}", inner, depth) for part, inner in kind.children)
        case "map":
            (_, key), (_, item) = kind.children
            keys = _bytes_of(f"map_keys({value})", _List(key), depth)
            return f"{keys} + {_bytes_of(f'map_values({value})', _List(item), depth)}"
    return "8"


@dataclass(frozen=True, slots=True)
class _List:
    """A list of a type, as DuckDB's own types look."""

    inner: Any
    id: str = "list"

    @property
    def children(self) -> tuple[tuple[str, Any]]:
        return (("child", self.inner),)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def plain(value: Any) -> Any:
    """A value of a database as JSON has it: times, decimals and ids as text, what is not a number as nothing."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Decimal() | UUID():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return value
    return value
