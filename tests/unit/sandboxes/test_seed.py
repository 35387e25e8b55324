"""What is sent is what arrives."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import seed as _seed
from securebench.sandboxes._bubblewrap import seed_reader as _seed_reader
from securebench.sandboxes._launch import wire as _wire


def _transfer(source: Path, target: Path) -> None:
    stream = io.BytesIO(b"".join(_seed.encode([("/work", source)])))
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _seed_reader.unpack(stream.read, {b"/work": root})
    finally:
        os.close(root)


def _tree(root: Path) -> dict[str, tuple[int, int, bytes | None]]:
    return {
        str(path.relative_to(root)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in root.rglob("*")
    }


def test_tree_arrives_unchanged(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    target.mkdir()
    (source / "a" / "b").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "a" / "b" / "c").write_bytes(os.urandom(3_000_000))
    (source / "a" / os.fsdecode(b"\xff\n")).write_bytes(b"")
    (source / "a" / "x").write_text("x")
    (source / "a" / "x").chmod(0o500)
    (source / "a" / "b").chmod(0o750)
    os.utime(source / "a" / "b", ns=(5, 123_456_789))
    os.utime(source / "a" / "x", ns=(5, 987_654_321))
    _transfer(source, target)
    assert _tree(target) == _tree(source)


def test_special_permission_bits_do_not_arrive(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "x").touch()
    (source / "x").chmod(0o6755)
    _transfer(source, target)
    assert (target / "x").stat().st_mode & 0o7777 == 0o755


def test_links_beneath_the_root_arrive_as_links(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a" / "b").mkdir(parents=True)
    target.mkdir()
    (source / "a" / "file").write_text("text")
    links = {"a/b/up": "../file", "folder": "a/b", "dangling": "not/there", "a/self": ".", "a/b/round": "../../a/./b"}
    for name, text in links.items():
        (source / name).symlink_to(text)
    os.utime(source / "folder", ns=(5, 123_456_789), follow_symlinks=False)
    _transfer(source, target)
    assert {name: os.readlink(target / name) for name in links} == links
    assert (target / "folder").lstat().st_mtime_ns == 123_456_789
    assert (target / "a" / "b" / "up").read_text() == "text"
    assert sorted(path.name for path in (target / "a").iterdir()) == ["b", "file", "self"]


@pytest.mark.parametrize("text", ["/etc/passwd", "/etc", "..", "../beside", "a/../../beside"])
def test_links_that_lead_elsewhere_are_text_and_nobody_follows_them(tmp_path: Path, text: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (tmp_path / "beside").write_text("not ours")
    (source / "x").symlink_to(text)
    _transfer(source, target)
    assert os.readlink(target / "x") == text
    assert b"not ours" not in b"".join(_seed.encode([("/work", source)]))


def test_anything_else_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(SandboxError):
        list(_seed.encode([("/work", tmp_path)]))


def test_cut_stream_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("content")
    data = b"".join(_seed.encode([("/work", tmp_path)]))
    for size in (0, 5, len(data) // 2, len(data) - 1):
        target = tmp_path / f"target{size}"
        target.mkdir()
        root = os.open(target, os.O_RDONLY)
        with pytest.raises(EOFError):
            _seed_reader.unpack(io.BytesIO(data[:size]).read, {b"/work": root})
        os.close(root)


def test_both_sides_agree_on_the_header() -> None:
    names = ("DIRECTORY", "FILE", "TARGET", "END", "LINK")
    assert _seed.HEADER.format == _seed_reader.HEADER.format
    assert [getattr(_seed, name) for name in names] == [getattr(_seed_reader, name) for name in names]


@pytest.mark.parametrize("items", [[], [b""], [b"a", b"", b"\0\xff"], [b"x" * 100_000]])
def test_packed_items_come_back(items: list[bytes]) -> None:
    assert _wire.unpack(_wire.pack(items)) == items
