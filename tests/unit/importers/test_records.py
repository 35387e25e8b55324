"""Rows of tables: one at a time, each with its place, and what cannot be read is told."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.imports import parquet

from securebench.errors import ConfigError
from securebench.importers import parquet as reader
from securebench.importers.parquet import plain
from securebench.importers.records import Unreadable, kind_of, read_records
from securebench.importers.sources import open_source


def records(path: Path, columns: tuple[str, ...] = ()) -> list[tuple[int, Any]]:
    with open_source(str(path)) as source:
        return [
            (one.place.line, one.message if isinstance(one, Unreadable) else dict(one.values))
            for one in read_records(source, columns)
        ]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_json_lines_have_their_lines(tmp_path: Path) -> None:
    text = '{"a": 1}\n\n{"a": 2\n[3]\n{"a": 4, "a": 5}\n{"a": NaN}\n{"a": 6}'
    found = records(written(tmp_path / "x.jsonl", text))
    assert found[0] == (1, {"a": 1})
    assert [line for line, _ in found] == [1, 3, 4, 5, 6, 7]
    messages = [str(value) for _, value in found[1:5]]
    for message, word in zip(
        messages, ("not JSON", "expected an object, found a list", "duplicate", "NaN"), strict=True
    ):
        assert word in message


def test_byte_order_mark_of_json_lines_is_no_part_of_the_first(tmp_path: Path) -> None:
    text = '\ufeff{"a": 1}\n\ufeff{"a": 2}\n'
    first, second = records(written(tmp_path / "x.jsonl", text))
    assert first == (1, {"a": 1})
    assert "byte order mark" in second[1]
    assert records(written(tmp_path / "x.json", '\ufeff{"a": 1}')) == [(0, {"a": 1})]


def test_json_is_a_list_or_one_object(tmp_path: Path) -> None:
    assert records(written(tmp_path / "x.json", '[{"a": 1}, 2]')) == [
        (1, {"a": 1}),
        (2, "expected an object, found a number"),
    ]
    assert records(written(tmp_path / "y.json", '{"a": 1}')) == [(0, {"a": 1})]
    for text, message in (
        ("7", "expected an object or a list"),
        ("[", "not JSON"),
        ('{"a": 1}\n{"a": 2}\n', r"looks like JSON lines"),
    ):
        with pytest.raises(ConfigError, match=message):
            records(written(tmp_path / "z.json", text))


def test_csv_has_names_places_and_records_over_several_lines(tmp_path: Path) -> None:
    text = 'q,answer\r\n"two\r\nlines, and a comma",B\r\n\r\nshort\r\nlast,"say ""A"""\r\n'
    assert records(written(tmp_path / "x.csv", text)) == [
        (2, {"q": "two\r\nlines, and a comma", "answer": "B"}),
        (5, "has 1 fields; there are 2 columns"),
        (6, {"q": "last", "answer": 'say "A"'}),
    ]


def test_csv_without_names_has_those_of_its_format(tmp_path: Path) -> None:
    columns = ("question", "A", "B", "answer")
    bare = written(tmp_path / "x.csv", "What?,one,two,B\nWho?,me,you,A\n")
    assert records(bare, columns)[0] == (1, {"question": "What?", "A": "one", "B": "two", "answer": "B"})
    named = written(tmp_path / "y.csv", "question,A,B,Answer\nWhat?,one,two,B\n")
    assert records(named, columns) == [(2, {"question": "What?", "A": "one", "B": "two", "Answer": "B"})]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,a\n1,2\n", "two columns"),
        (b'a,b\n1,2\n"1,2\n3,4\n', r"x\.csv:3: cannot be read from here on"),
        (b"a,\xff\n1,2\n", r"x\.csv:1: is no UTF-8"),
    ],
)
def test_csv_that_cannot_be_read_further_is_told(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(ConfigError, match=message):
        records(tmp_path / "x.csv")


def test_csv_goes_on_after_a_line_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"a,b\n\xff\xfe,2\n\n\xc3\xa9,4\n")
    assert records(tmp_path / "x.csv") == [(2, "is no UTF-8"), (4, {"a": "\u00e9", "b": "4"})]


def test_tsv(tmp_path: Path) -> None:
    assert records(written(tmp_path / "x.tsv", "a\tb\n1\t2\n")) == [(2, {"a": "1", "b": "2"})]


def test_parquet_gives_plain_values(tmp_path: Path) -> None:
    rows = [{"q": "a", "choices": ["x", "y"], "answer": 1, "meta": {"n": 1.5}}, {"q": "b", "choices": None}]
    found = records(parquet(tmp_path / "x.parquet", rows))
    assert found[0] == (1, rows[0])
    assert found[1] == (2, {"q": "b", "choices": None, "answer": None, "meta": None})


def test_times_of_a_zone_in_parquet_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    moment = "timestamptz '2024-01-02 03:04:05+00'"
    duckdb.sql(f"copy (select {moment} as t, [{moment}] as l, 1 as n) to '{path}' (format parquet)")
    text = "2024-01-02 03:04:05+00"
    assert records(path) == [(1, {"t": text, "l": [text], "n": 1})]


def test_parquet_of_many_rows_comes_in_order(tmp_path: Path) -> None:
    rows = [{"n": number} for number in range(5000)]
    assert [value["n"] for _, value in records(parquet(tmp_path / "x.parquet", rows))] == list(range(5000))


SHAPES = {
    "text": "repeat('x', 20000)",
    "bytes": "encode(repeat('x', 20000))",
    "list": "[[repeat('x', 10000), null], [repeat('y', 10000)], null]",
    "struct": "{'a b\"c': repeat('x', 20000), 'n': 1}",
    "map": "map([repeat('k', 10000)], [repeat('x', 10000)])",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_small_parquet_of_many_bytes_is_refused_before_it_fills_memory(
    tmp_path: Path, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra analysis is not installed")
    path = tmp_path / "x.parquet"
    duckdb.sql(f"copy (select {SHAPES[shape]} as a from range(3000)) to '{path}' (compression zstd)")
    assert path.stat().st_size < 10_000
    assert len(records(path)) == 3000  # the control: 60 MB are nothing
    monkeypatch.setattr(reader, "VECTOR_BYTES", 2048 * 20_000 - 1)
    with pytest.raises(ConfigError, match=r"x\.parquet: 2048 of its rows hold 4\d{7} bytes; .* JSON lines"):
        records(path)
    monkeypatch.setattr(reader, "VECTOR_BYTES", 2**30)
    monkeypatch.setattr(reader, "RATIO_ALLOWANCE", 2**20)
    with pytest.raises(ConfigError, match=r"unpacks to 6\d{7} bytes; at most 200 to 1"):
        records(path)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "too small to be a Parquet file"),
        (b"PAR1 but no Parquet PAR1", "Footer length error"),
        (b"PAR1" + b"\0" * 100, "No magic bytes found at end"),
    ],
)
def test_what_is_no_parquet_is_told(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "x.parquet").write_bytes(data)
    with pytest.raises(ConfigError, match=rf"\Ax\.parquet: not Parquet that can be read: {why}\Z"):
        records(tmp_path / "x.parquet")


def test_values_of_a_database_become_plain() -> None:
    from datetime import date

    value = {"d": date(2024, 3, 5), "n": Decimal("1.50"), "x": float("nan"), "b": b"text", "l": (1, b"\xff")}
    assert plain(value) == {"d": "2024-03-05", "n": "1.50", "x": None, "b": "text", "l": [1, b"\xff"]}


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a.jsonl", ".jsonl"), ("d/A.JSONL.gz", ".jsonl"), ("x.tar.gz", ".tar"), ("d.x/none", ""), ("a.csv.zst", ".csv")],
)
def test_kind_of_a_file(path: str, kind: str) -> None:
    assert kind_of(path) == kind
