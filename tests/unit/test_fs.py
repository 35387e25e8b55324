"""Opening what somebody else wrote: nothing is followed, nothing is waited for, nothing is unbounded."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from securebench import _fs


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    with _fs.open_directory(tmp_path) as descriptor:
        yield descriptor


@pytest.fixture(autouse=True)
def _no_descriptor_is_left_open() -> Iterator[None]:
    def held() -> set[str]:
        return set(os.listdir("/proc/self/fd"))

    before = len(held())
    yield
    assert len(held()) <= before + 1  # the fixture `root` may still be open


def read(root: int, path: str, limit: int = 100) -> bytes:
    with _fs.open_beneath(root, PurePosixPath(path)) as descriptor:
        return _fs.read_bounded(descriptor, limit, path)


def test_plain_file_is_read(root: int, tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(b"data")
    assert read(root, "a/b/c") == b"data"


@pytest.mark.parametrize("path", ["none", "none/x", "a/none"])
def test_missing_entry_is_missing(root: int, tmp_path: Path, path: str) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(_fs.Missing, match="does not exist"):
        read(root, path)


def _links(directory: Path) -> None:
    (directory / "file").write_text("x")
    (directory / "dir/inner").mkdir(parents=True)
    (directory / "dir/file").write_text("x")
    (directory / "link").symlink_to("file")
    (directory / "absolute").symlink_to("/etc/passwd")
    (directory / "up").symlink_to("..")
    (directory / "dirlink").symlink_to("dir")
    (directory / "dangling").symlink_to("nothing")
    (directory / "loop").symlink_to("loop")


@pytest.mark.parametrize("path", ["link", "absolute", "up", "up/x", "dirlink", "dirlink/file", "dangling", "loop"])
def test_link_anywhere_on_the_way_is_refused(root: int, tmp_path: Path, path: str) -> None:
    _links(tmp_path)
    with pytest.raises(_fs.UnsafeEntry, match="symbolic link"):
        read(root, path)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making a device needs root")


@pytest.mark.parametrize("make", [_fifo, _socket, _device])
def test_special_file_is_refused_and_not_opened(root: int, tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(_fs.UnsafeEntry, match="neither a regular file nor a directory"):
        read(root, "x")
    with pytest.raises(_fs.UnsafeEntry, match="neither a regular file nor a directory"):
        list(_fs.walk(root, PurePosixPath("x"), 10))


def test_file_used_as_a_directory_is_refused(root: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(_fs.UnsafeEntry, match="not a directory"):
        read(root, "file/x")


def test_directory_is_not_read_as_a_file(root: int, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    with pytest.raises(_fs.UnsafeEntry, match="not a regular file"):
        read(root, "dir")


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_swap_between_look_and_open_is_noticed(
    root: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "x").write_text("innocent")
    (tmp_path / "secret").write_text("secret")
    real = os.open

    def swapping(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if path == "x":
            (tmp_path / "x").unlink()
            if kind == "link":
                (tmp_path / "x").symlink_to("secret")
            elif kind == "fifo":
                os.mkfifo(tmp_path / "x")
            else:
                (tmp_path / "x").mkdir()
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(_fs.UnsafeEntry, match=r"symbolic link|changed while"):
        read(root, "x")


def test_swapped_parent_leads_nowhere_else(root: int, tmp_path: Path) -> None:
    """The walk holds the directory it opened; what later stands at its name does not matter."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/file").write_text("inside")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("outside")
    with _fs.open_beneath(root, PurePosixPath("dir")) as directory:
        (tmp_path / "dir").rename(tmp_path / "moved")
        (tmp_path / "dir").symlink_to(outside)
        assert read(directory, "file") == b"inside"


def test_entry_on_another_file_system_is_refused() -> None:
    with _fs.open_directory(Path("/")) as root, pytest.raises(_fs.UnsafeEntry, match="another file system"):
        read(root, "proc/version")


def test_walk_does_not_enter_another_file_system(tmp_path: Path) -> None:
    (tmp_path / "tree/mounted").mkdir(parents=True)
    code = (
        "import sys; from pathlib import Path, PurePosixPath; from securebench import _fs\n"
        "with _fs.open_directory(Path(sys.argv[1])) as root:\n"
        "    try: list(_fs.walk(root, PurePosixPath('tree'), 10))\n"
        "    except _fs.UnsafeEntry as error: print(error)\n"
    )
    script = 'mount -t tmpfs tmpfs "$1/tree/mounted" || exit 77; exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode in {1, 77}:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
    assert done.stdout.strip() == "tree/mounted lies on another file system"


def test_file_over_the_limit_is_refused_before_and_while_reading(root: int, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 100)
    assert len(read(root, "x", 100)) == 100
    with pytest.raises(_fs.TooLarge, match="has 100 bytes; at most 99"):
        read(root, "x", 99)


def test_file_that_grows_while_read_is_refused(root: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"x" * 10)
    real = os.read

    def growing(descriptor: int, size: int) -> bytes:
        with (tmp_path / "x").open("ab") as file:
            file.write(b"y" * 10)
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", growing)
    with pytest.raises(_fs.TooLarge, match="grew beyond 50 bytes"):
        read(root, "x", 50)


def test_sparse_giant_is_refused_without_reading(root: int, tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(_fs.TooLarge):
        read(root, "x", 1000)


# Walks


def walked(root: int, path: str, budget: int = 100) -> list[str]:
    return [str(entry.path) for entry in _fs.walk(root, PurePosixPath(path), budget)]


def test_walk_meets_everything_in_stable_order(root: int, tmp_path: Path) -> None:
    for name in ("b", "a", "c/y", "c/x", "C"):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_text(name)
    assert walked(root, "t") == [".", "C", "a", "b", "c", "c/x", "c/y"]
    assert walked(root, "t/a") == ["."]


@pytest.mark.parametrize("make", [_fifo, _socket, lambda path: path.symlink_to("/etc/passwd")])
def test_walk_stops_at_anything_that_is_not_plain(root: int, tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "t/deep").mkdir(parents=True)
    make(tmp_path / "t/deep/x")
    with pytest.raises(_fs.UnsafeEntry, match=r"t/deep/x is"):
        walked(root, "t")


@pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"a\\b", b"\x1b[2J", "\u202e".encode(), b"\xed\xa0\x80"])
def test_name_outside_the_grammar_is_refused_and_shown_escaped(root: int, tmp_path: Path, name: bytes) -> None:
    (tmp_path / "t").mkdir()
    os.close(os.open(os.fsencode(tmp_path / "t") + b"/" + name, os.O_CREAT | os.O_WRONLY))
    with pytest.raises(_fs.UnsafeEntry, match="t holds the name '") as caught:
        walked(root, "t")
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


def test_walk_budget_counts_files_and_directories(root: int, tmp_path: Path) -> None:
    (tmp_path / "t/d").mkdir(parents=True)
    (tmp_path / "t/d/f").touch()
    assert len(walked(root, "t", 3)) == 3
    with pytest.raises(_fs.TooLarge, match="too many files"):
        walked(root, "t", 2)


def test_deep_tree_is_refused_without_running_out_of_stack_or_descriptors(root: int, tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    with pytest.raises(_fs.TooLarge, match="nested too deeply"):
        walked(root, "d", 10_000)
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


# Digests


def digest(root: int, path: str = "t") -> str:
    return _fs.tree_digest(root, PurePosixPath(path), 100, 1000)


def test_digest_pins_names_kinds_bytes_and_the_executable_bit(root: int, tmp_path: Path) -> None:
    (tmp_path / "t/d").mkdir(parents=True)
    (tmp_path / "t/f").write_text("1")
    seen = [digest(root)]
    os.utime(tmp_path / "t/f", (0, 0))
    (tmp_path / "t/f").chmod(0o600)
    assert digest(root) == seen[0], "times and other permissions do not matter"
    (tmp_path / "t/f").chmod(0o755)
    seen.append(digest(root))
    (tmp_path / "t/f").write_text("2")
    seen.append(digest(root))
    (tmp_path / "t/f").rename(tmp_path / "t/g")
    seen.append(digest(root))
    (tmp_path / "t/d").rmdir()
    seen.append(digest(root))
    (tmp_path / "t/d").touch()
    seen.append(digest(root))
    assert len(set(seen)) == len(seen)


def test_digest_of_too_many_bytes_is_refused(root: int, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"x" * 1001)
    with pytest.raises(_fs.TooLarge, match="more than 1000 bytes"):
        digest(root)


# Writing


def test_written_file_has_its_mode_and_the_fixed_time(root: int, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert _fs.write_new(root, PurePosixPath("a/b/c"), b"data", 0o644) == 4
    finally:
        os.umask(before)
    status = (tmp_path / "a/b/c").stat()
    assert (status.st_mode & 0o7777, status.st_mtime_ns) == (0o644, _fs.EPOCH_NS)
    assert (tmp_path / "a/b").stat().st_mode & 0o7777 == 0o755, "whatever the umask is"


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, _fifo, lambda path: path.symlink_to("elsewhere")])
def test_nothing_is_written_over_or_through(root: int, tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(FileExistsError):
        _fs.write_new(root, PurePosixPath("x"), b"data", 0o644)
    assert not (tmp_path / "elsewhere").exists()


def test_parent_that_is_a_link_is_not_followed(root: int, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(NotADirectoryError):
        _fs.write_new(root, PurePosixPath("link/x"), b"data", 0o644)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_copy_from_a_descriptor_is_complete(root: int, tmp_path: Path) -> None:
    (tmp_path / "from").write_bytes(os.urandom(3 * _fs.CHUNK + 7))
    with _fs.open_beneath(root, PurePosixPath("from")) as source:
        assert _fs.write_new(root, PurePosixPath("to"), source, 0o444) == 3 * _fs.CHUNK + 7
    assert (tmp_path / "to").read_bytes() == (tmp_path / "from").read_bytes()


# Files the operator names


def test_named_file_may_be_reached_through_the_operators_links(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    with _fs.open_named(tmp_path / "link") as file:
        assert file.read() == b"x"


@pytest.mark.parametrize("make", [_fifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_named_file_that_is_not_regular_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(OSError, match="not a regular file"), _fs.open_named(tmp_path / "x"):
        pass


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x"])
def test_nothing_is_written_outside_the_root(root: int, tmp_path: Path, path: str) -> None:
    with pytest.raises(_fs.UnsafeEntry, match="does not stay beneath its root"):
        _fs.write_new(root, PurePosixPath(path), b"data", 0o644)
    assert list(tmp_path.iterdir()) == []
