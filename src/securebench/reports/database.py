"""Runs as an SQL database in memory, which nothing leads out of.

DuckDB is closed before the first query: no file, no network, no extension, no variable of ours, and no way to change
that. A query is one statement that reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from securebench.errors import ConfigError
from securebench.reports.runs import Run
from securebench.reports.tables import TABLES, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",  # else a name in a query can be a variable of the calling Python
    "temp_directory": "",
    "memory_limit": "2GB",
}
_BATCH = 5000
T = TypeVar("T")


class Database:
    """`tables` of some runs. Use as a context manager."""

    def __init__(self, runs: Sequence[Run], tables: Sequence[Table] = TABLES) -> None:
        """Raises ConfigError without the extra."""
        self._connection = _connect(_CLOSED)
        for table in tables:
            _fill(self._connection, table, runs)
        self._connection.execute("SET lock_configuration = true")

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    @contextmanager
    def query(self, sql: str) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]]]]:
        """The names of the columns, and the rows as they come. Raises ConfigError for what is no query, or fails."""
        from duckdb import Error, StatementType

        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != StatementType.SELECT:
                raise ConfigError("a query is one statement that reads, such as SELECT … FROM records")
            result = self._interruptible(lambda: self._connection.execute(statements[0]))
            yield [column[0] for column in result.description or ()], self._fetched(result)
        except Error as error:
            raise ConfigError(f"the query failed: {error}") from error

    def _fetched(self, result: DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
        while rows := self._interruptible(lambda: result.fetchmany(_BATCH)):
            yield from rows

    def _interruptible(self, work: Callable[[], T]) -> T:
        """DuckDB hears of Ctrl-C only between its own steps, which can be long; a thread that waits hears at once."""
        with ThreadPoolExecutor(1) as worker:
            future = worker.submit(work)
            try:
                return future.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise


def write_parquet(runs: Sequence[Run], table: Table, path: Path) -> None:
    """One table as a Parquet file. Raises ConfigError without the extra, or where it cannot be written."""
    connection = _connect({**_CLOSED, "enable_external_access": "true"})  # to write; no query of anybody's runs in it
    from duckdb import Error

    try:
        _fill(connection, table, runs)
        quoted = str(path).replace("'", "''")
        connection.execute(f"COPY {table.name} TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)")
    except Error as error:
        raise ConfigError(f"{path}: cannot be written: {error}") from error
    finally:
        connection.close()


def check_extra() -> None:
    """Before runs are read for nothing. Raises ConfigError without DuckDB."""
    try:
        import duckdb  # noqa: F401 - whether it is there
    except ImportError:
        raise ConfigError(
            "queries and Parquet need DuckDB, which is the extra `analysis`: pip install 'securebench[analysis]'"
        ) from None


def _connect(config: dict[str, str]) -> DuckDBPyConnection:
    check_extra()
    import duckdb

    return duckdb.connect(":memory:", config=dict(config))


def _fill(connection: DuckDBPyConnection, table: Table, runs: Sequence[Run]) -> None:
    columns = ", ".join(f"{column.name} {column.kind}" for column in table.columns)
    connection.execute(f"CREATE TABLE {table.name} ({columns})")
    values = ", ".join(f"unnest(${n}::{column.kind}[])" for n, column in enumerate(table.columns, 1))
    rows = table.rows(runs)
    while batch := list(islice(rows, _BATCH)):
        # Column by column: parameters are lists, which are many times faster than rows.
        connection.execute(f"INSERT INTO {table.name} SELECT {values}", [list(one) for one in zip(*batch, strict=True)])
