"""SQL over runs: it answers, and it leads nowhere. Every way out is tried, with the same way open as a control."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tests.control_runs import constant_run, write_control_pack
from tests.hostile_run import TEXTS, hostile_run
from tests.injection import controls_in

from securebench.errors import ConfigError
from securebench.reports.database import Database, write_parquet
from securebench.reports.runs import Run, load_runs
from securebench.reports.tables import RECORDS, TABLES

SECRET = "a secret that lies beside"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    place = tmp_path_factory.mktemp("runs")
    pack = write_control_pack(place / "pack")
    return load_runs(constant_run(place, name, name, pack=pack, attempts=2) for name in ("42", "43"))


def asked(runs: tuple[Run, ...], sql: str) -> list[tuple[object, ...]]:
    with Database(runs) as database, database.query(sql) as (_, rows):
        return list(rows)


def test_tables_hold_what_the_runs_do(runs: tuple[Run, ...]) -> None:
    assert asked(runs, "SELECT run, count(*), sum(score) FROM records GROUP BY run ORDER BY run") == [
        ("42", 28, 18.0),
        ("43", 28, 12.0),
    ]
    assert asked(runs, "FROM tasks SELECT count(*), sum(judged), sum(passed) WHERE run = '42'") == [(14, 28, 18)]
    assert asked(runs, "SELECT run, seal, round(score, 4), filtered FROM runs ORDER BY ALL")[0] == (
        "42", "complete", 0.6429, False,
    )  # fmt: skip
    assert asked(runs, "SELECT DISTINCT unnest(tags) FROM records ORDER BY 1") == [("easy",), ("hard",)]
    assert asked(runs, "SELECT typeof(started_at), count(DISTINCT candidate_digest) FROM records GROUP BY 1") == [
        ("TIMESTAMP", 2)
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_is_there_with_its_type(runs: tuple[Run, ...], table: object) -> None:
    described = asked(runs, f"SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{table.name}'")  # type: ignore[attr-defined]
    assert described == [(column.name, column.kind) for column in table.columns]  # type: ignore[attr-defined]


WAYS_OUT = {
    "read_csv": "SELECT * FROM read_csv('{file}', header=false, columns={{'a': 'VARCHAR'}})",
    "read_text": "SELECT content FROM read_text('{file}')",
    "read_blob": "SELECT content FROM read_blob('{file}')",
    "a file as a table": "SELECT * FROM '{file}'",
    "glob": "SELECT * FROM glob('{directory}/*')",
    "read_json": "SELECT * FROM read_ndjson_objects('{json}')",
    "parquet": "SELECT * FROM read_parquet('{parquet}')",
    "a query inside": "SELECT * FROM query('SELECT content FROM read_text(''{file}'')')",
    "sniffing": "SELECT * FROM sniff_csv('{file}')",
}


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("outside")
    (place / "secret.csv").write_text(f"secret\n{SECRET}\n")
    (place / "secret.json").write_text(f'{{"a": "{SECRET}"}}\n')
    duckdb.execute(f"COPY (SELECT '{SECRET}' AS a) TO '{place}/secret.parquet'")
    return {
        "file": f"{place}/secret.csv",
        "json": f"{place}/secret.json",
        "parquet": f"{place}/secret.parquet",
        "directory": str(place),
    }


@pytest.mark.parametrize("way", WAYS_OUT)
def test_query_reads_no_file(runs: tuple[Run, ...], outside: dict[str, str], way: str) -> None:
    sql = WAYS_OUT[way].format(**outside)
    with pytest.raises(ConfigError, match=r"disabled by configuration|does not exist"):
        asked(runs, sql)
    # The control: where nothing is closed, it is read.
    assert "secret" in str(duckdb.connect(":memory:").execute(sql).fetchall())


STATEMENTS = [
    "COPY records TO '/tmp/owned.csv'",
    "ATTACH '/tmp/owned.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA database_list",
    "EXPORT DATABASE '/tmp/owned'",
    "IMPORT DATABASE '/tmp/owned'",
    "CREATE SECRET s (TYPE s3)",
    "CREATE TABLE t AS SELECT 1",
    "DROP TABLE records",
    "UPDATE records SET score = 1",
    "INSERT INTO records (run) VALUES ('x')",
    "CALL pragma_version()",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE records",
    "CHECKPOINT",
    "EXPLAIN ANALYZE COPY records TO '/tmp/owned.csv'",
    "",
    ";",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_only_one_statement_that_reads_is_a_query(runs: tuple[Run, ...], sql: str) -> None:
    with pytest.raises(ConfigError):
        asked(runs, sql)
    assert not any(Path(name).exists() for name in ("/tmp/owned.csv", "/tmp/owned.db", "/tmp/owned"))


def test_database_is_closed_also_for_who_gets_past_the_statement_check(
    runs: tuple[Run, ...], outside: dict[str, str]
) -> None:
    """The second wall alone: DuckDB itself refuses, and cannot be told otherwise."""
    with Database(runs) as database:
        connection = database._connection
        for sql in (
            "SET enable_external_access = true",
            "SET lock_configuration = false",
            f"COPY records TO '{outside['directory']}/out.csv'",
            f"ATTACH '{outside['directory']}/out.db'",
            "LOAD httpfs",
            "INSTALL httpfs",
            "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(sql)
    assert not list(Path(outside["directory"]).glob("out*"))


def test_query_sees_no_variable_of_ours(runs: tuple[Run, ...]) -> None:
    numpy = pytest.importorskip("numpy")
    ours = numpy.array([1, 2, 3])  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("SELECT sum(column0) FROM ours").fetchall() == [(6,)]  # the control
    with pytest.raises(ConfigError, match="does not exist"):
        asked(runs, "SELECT * FROM ours")


def test_mistake_in_a_query_is_told(runs: tuple[Run, ...]) -> None:
    with pytest.raises(ConfigError, match=r"(?s)the query failed.*nowhere"):
        asked(runs, "SELECT * FROM nowhere")
    with pytest.raises(ConfigError, match=r"(?s)the query failed.*sore"):
        asked(runs, "SELECT sore FROM records")
    with pytest.raises(ConfigError, match="the query failed"):
        asked(runs, "SELEKT 1")
    with pytest.raises(ConfigError, match=r"(?s)the query failed.*Conversion"):
        asked(runs, "SELECT task_id::INTEGER FROM records")


def test_missing_extra_is_one_clear_error(runs: tuple[Run, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ConfigError, match=r"pip install 'securebench\[analysis\]'"):
        Database(runs)
    with pytest.raises(ConfigError, match="analysis"):
        write_parquet(runs, RECORDS, Path("/nowhere/x"))


def test_nothing_but_a_query_imports_duckdb() -> None:
    code = "import sys, securebench.cli.query, securebench.cli.export, securebench.reports.tables; print('duckdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


def test_parquet_holds_the_table(runs: tuple[Run, ...], tmp_path: Path) -> None:
    path = tmp_path / "it's here.parquet"
    write_parquet(runs, RECORDS, path)
    (found,) = duckdb.sql(
        "SELECT count(*), sum(score), min(len(tags)) FROM read_parquet($1)", params=[str(path)]
    ).fetchall()
    assert found == (56, 30.0, 1)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_parquet(runs, RECORDS, tmp_path / "nowhere" / "x.parquet")


def test_texts_of_strangers_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    runs = load_runs([hostile_run(tmp_path / "run")])
    rows = asked(runs, "SELECT task_id, family, failure_reason, model, tags[1], image FROM records")
    assert len(rows) == len(TEXTS)
    assert not any(controls_in(str(value), keep="") for row in rows for value in row if value is not None)
    assert asked(runs, "SELECT max(started_at), max(input_tokens), sum(cost_usd) FROM records") == [(None, None, None)]
    write_parquet(runs, RECORDS, tmp_path / "x.parquet")
