"""The writer: one source, one set of bytes; rows that no pack can have are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.packs import load

from securebench.importers.base import CannotConvert, NewFile, PackRow
from securebench.importers.writer import PackWriter

NOTE = {"format": "test", "name": "rows.jsonl", "digest": "sha256:" + "0" * 64, "rows": 1, "licence": None}


def question(name: str = "q1", **changes: object) -> PackRow:
    fields = {"input": {"question": "1 + 1?"}, "eval": {"accepted_answers": [2]}} | changes
    return PackRow(id=name, **fields)  # type: ignore[arg-type]


def write(directory: Path, *rows: PackRow) -> list[str]:
    directory.mkdir()
    with PackWriter(directory, "test", "short_answer") as writer:
        ids = [writer.add(row) for row in rows]
        writer.finish(NOTE)
    return ids


def test_pack_loads_and_says_where_it_comes_from(tmp_path: Path) -> None:
    write(tmp_path / "pack", question())
    pack = load(tmp_path / "pack")
    assert pack.ids == ("q1",)
    assert pack.manifest.source is not None
    assert (pack.manifest.source.name, pack.manifest.source.licence) == ("rows.jsonl", None)


def test_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, question(), question("q2", files=(NewFile("hidden", "a/b.txt", b"x", True),)))
    for file in ("manifest.yaml", "tasks.jsonl", "hidden/a/b.txt"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert load(tmp_path / "one").digest == load(tmp_path / "two").digest


def test_rows_of_the_same_name_get_numbers(tmp_path: Path) -> None:
    rows = [question("a"), question("a~2"), question("a"), question("a"), question(" b\tc\n")]
    assert write(tmp_path / "pack", *rows) == ["a", "a~2", "a~3", "a~4", "b_c"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"eval": {"accepted_answers": []}}, "at least 1 items"),
        ({"input": {"question": "?", "answer": 2}}, "unknown key"),
        ({"eval": {"accepted_answers": [float("nan")]}}, "not plain JSON"),
        ({"eval": {"accepted_answers": [b"2"]}}, "not plain JSON"),
        ({"files": (NewFile("public", "../out.txt", b""),)}, "cannot have"),
        ({"files": (NewFile("public", "a", b"1"), NewFile("public", "a", b"2"))}, "other bytes"),
        ({"files": (NewFile("public", "a", b"1"), NewFile("public", "a/b", b"2"))}, "cannot be written"),
    ],
)
def test_what_no_pack_can_have_is_refused(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    tmp_path.joinpath("pack").mkdir()
    with PackWriter(tmp_path / "pack", "test", "short_answer") as writer:
        with pytest.raises(CannotConvert, match=reason):
            writer.add(question(**changes))
        assert writer.add(question()) == "q1"
        writer.finish(NOTE)
    assert len(load(tmp_path / "pack")) == 1
    assert not (tmp_path / "out.txt").exists()


def test_files_are_written_once_and_keep_their_mode(tmp_path: Path) -> None:
    file = NewFile("public", "run.sh", b"true\n", executable=True)
    rows = [question(name, assets=({"path": "run.sh"},), files=(file,)) for name in ("a", "b")]
    write(tmp_path / "pack", *rows)
    assert (tmp_path / "pack/assets/run.sh").stat().st_mode & 0o777 == 0o755
    assert len(load(tmp_path / "pack")) == 2
