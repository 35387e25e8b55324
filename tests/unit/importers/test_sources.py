"""Sources: files, directories and archives are the same files by name, read under limits, and nothing is extracted."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from securebench.errors import ConfigError
from securebench.importers.records import Unreadable, read_records
from securebench.importers.sources import archives, open_source, spool

ROWS = b'{"a": 1}\n{"a": 2}\n'


def values(source: str, *only: str) -> list[object]:
    with open_source(source, only) as opened:
        return [record.values["a"] for record in read_records(opened) if not isinstance(record, Unreadable)]


def tar(path: Path, members: dict[str, bytes], mode: str = "w", **changes: object) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in changes.items():
                setattr(info, field, value)
            archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "rows.jsonl": lambda path: _written(path, ROWS),
    "rows.jsonl.gz": lambda path: _written(path, gzip.compress(ROWS)),
    "rows.jsonl.xz": lambda path: _written(path, lzma.compress(ROWS)),
    "rows.jsonl.bz2": lambda path: _written(path, bz2.compress(ROWS)),
    "rows.tar": lambda path: tar(path, {"data/rows.jsonl": ROWS, "README.md": b"#"}),
    "rows.tar.gz": lambda path: tar(path, {"./data/rows.jsonl": ROWS}, "w:gz"),
    "rows.tgz": lambda path: tar(path, {"rows.jsonl.gz": gzip.compress(ROWS)}, "w:gz"),
    "rows.tar.xz": lambda path: tar(path, {"rows.jsonl": ROWS}, "w:xz"),
    "rows.tar.bz2": lambda path: tar(path, {"rows.jsonl": ROWS}, "w:bz2"),
    "rows.zip": lambda path: zipped(path, {"deep/er/rows.jsonl": ROWS, "LICENSE": b"mine"}),
}


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", MAKERS)
def test_rows_are_the_same_however_they_are_packed(tmp_path: Path, name: str) -> None:
    path = MAKERS[name](tmp_path / name)
    assert values(str(path)) == [1, 2]
    with open_source(str(path)) as source:
        assert source.digest == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert os.listdir(tmp_path) == [name]


def test_directory_is_read_in_a_stable_order_without_its_history(tmp_path: Path) -> None:
    for name, data in {"b.jsonl": b'{"a": 2}', "a.jsonl": b'{"a": 1}', ".git/c.jsonl": b'{"a": 3}'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert values(str(tmp_path)) == [1, 2]
    with open_source(str(tmp_path)) as source:
        before = source.digest
    (tmp_path / ".git/c.jsonl").unlink()
    with open_source(str(tmp_path)) as source:
        assert source.digest == before
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 4}')
    with open_source(str(tmp_path)) as source:
        assert source.digest != before


def test_archive_gives_the_files_of_the_directory_in_its_order(tmp_path: Path) -> None:
    names = ("b/c.jsonl", "b.jsonl", "a-b.jsonl", "a/z.jsonl", "é.jsonl", "B.jsonl", "a/.git/x.jsonl")
    members = {name: f'{{"a": "{name}"}}'.encode() for name in names}
    for name, data in members.items():
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / name).write_bytes(data)
    found = values(str(tmp_path / "d"))
    assert sorted(map(str, found)) == sorted(set(names) - {"a/.git/x.jsonl"})
    backwards = dict(reversed(members.items()))
    assert values(str(tar(tmp_path / "x.tar", members))) == values(str(zipped(tmp_path / "x.zip", backwards))) == found


def test_only_chooses_files(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"train.jsonl": b'{"a": 1}', "more/test.jsonl": b'{"a": 2}'})
    with pytest.raises(ConfigError, match=r"several splits \(test, train\); choose files with --only"):
        values(str(path))
    assert values(str(path), "test*") == [2]
    assert values(str(path), "more/*") == [2]
    with pytest.raises(ConfigError, match="no file that matches"):
        values(str(path), "dev*")


def _linked_zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("rows.jsonl")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: tar(path, {"../out.jsonl": ROWS}), r"'\.\.'"),
        (lambda path: tar(path, {"/etc/rows.jsonl": ROWS, "a/rows.jsonl\u202e": b""}), "control or invisible"),
        (lambda path: tar(path, {"rows.jsonl": b""}, type=tarfile.SYMTYPE, linkname="/etc/passwd"), "symbolic link"),
        (lambda path: tar(path, {"rows.jsonl": b""}, type=tarfile.LNKTYPE, linkname="/etc/passwd"), "hard link"),
        (lambda path: tar(path, {"rows.jsonl": b""}, type=tarfile.FIFOTYPE), "special file"),
        (lambda path: zipped(path, {"../out.jsonl": ROWS}), r"'\.\.'"),
        (lambda path: zipped(path, {"C:\\rows.jsonl": ROWS, "x\\y": b""}), "backslash"),
        (lambda path: _written(path, b"PK\x03\x04 and nothing else"), "not a sound zip"),
        (_linked_zip, "neither a file nor a directory"),
    ],
)
def test_hostile_archives_are_refused(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    path = make(tmp_path / "x.tar")
    with pytest.raises(ConfigError, match=message):
        values(str(path))
    assert os.listdir(tmp_path) == ["x.tar"]


def test_member_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for _ in range(2):
            info = tarfile.TarInfo("rows.jsonl")
            archive.addfile(info, io.BytesIO())
    with pytest.raises(ConfigError, match="twice"):
        values(str(tmp_path / "x.tar"))


def test_exploding_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = spool.ImportLimits(ratio=10, ratio_allowance=2**20)
    monkeypatch.setattr(spool, "LIMITS", small)
    path = _written(tmp_path / "x.jsonl.gz", gzip.compress(b"\n" * 2**25))
    with pytest.raises(ConfigError, match="at most 10 to 1"):
        values(str(path))
    monkeypatch.undo()  # the control: the same bytes under the usual limits
    assert values(str(path)) == []


def test_exploding_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "x.zip", {"rows.jsonl": b"\n" * 2**24})
    assert values(str(path)) == []  # the control
    monkeypatch.setattr(archives, "_RATIO_ALLOWANCE", 2**20)
    with pytest.raises(ConfigError, match=r"says that it unpacks to 16777216 bytes; at most 200 to 1"):
        values(str(path))


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"rows.jsonl": ROWS})
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="encrypted"):
        values(str(path))


PACKED = gzip.compress(ROWS, mtime=0)


@pytest.mark.parametrize("data", [PACKED[:-9], PACKED + b"more", b"\x1f\x8bnothing"], ids=["short", "more", "none"])
def test_damaged_packing_is_told(tmp_path: Path, data: bytes) -> None:
    path = _written(tmp_path / "x.jsonl.gz", data)
    with pytest.raises(ConfigError, match=r"x\.jsonl\.gz: .*(damaged|too early|after the end)"):
        values(str(path))


def test_links_in_a_directory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match="symbolic link"):
        values(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.jsonl", "no such file"),
        ("openai/gsm8k", "is named hf:openai/gsm8k@COMMIT"),
        ("rows.txt", r"holds no table; expected a file that ends with \.jsonl"),
    ],
)
def test_what_is_no_source_is_told(tmp_path: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.txt").write_text("hello")
    with pytest.raises(ConfigError, match=message):
        values(name)


def test_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(ConfigError, match="not a regular file"):
        values(str(tmp_path / "rows.jsonl"))


def test_damaged_member_of_a_zip_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("rows.jsonl", ROWS * 100)
    data = bytearray((tmp_path / "x.zip").read_bytes())
    data[60:70] = bytes(10)
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(ConfigError, match="cannot be read"):
        values(str(tmp_path / "x.zip"))
