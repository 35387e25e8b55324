"""What is sent is what arrives."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import joiner as _joiner
from securebench.sandboxes._bubblewrap import seed as _seed


def _transfer(source: Path, target: Path) -> None:
    stream = io.BytesIO(b"".join(_seed.encode([("/work", source)])))
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _joiner._unpack_seed(stream.read, {b"/work": root})
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


@pytest.mark.parametrize("make", [lambda p: p.symlink_to("/etc/passwd"), lambda p: p.symlink_to("/etc"), os.mkfifo])
def test_anything_else_is_refused(tmp_path: Path, make: object) -> None:
    make(tmp_path / "x")  # type: ignore[operator]
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
            _joiner._unpack_seed(io.BytesIO(data[:size]).read, {b"/work": root})
        os.close(root)


def test_both_sides_agree_on_the_header() -> None:
    assert _seed.HEADER.format == _joiner._SEED_HEADER.format
    assert (_seed.DIRECTORY, _seed.FILE, _seed.TARGET, _seed.END) == (
        _joiner._DIRECTORY,
        _joiner._FILE,
        _joiner._TARGET,
        _joiner._END,
    )


@pytest.mark.parametrize("items", [[], [b""], [b"a", b"", b"\0\xff"], [b"x" * 100_000]])
def test_packed_items_come_back(items: list[bytes]) -> None:
    assert _joiner.unpack(_joiner.pack(items)) == items
