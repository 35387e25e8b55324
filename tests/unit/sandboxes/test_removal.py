"""Trees that ordinary removal gives up on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from securebench._leftovers import staging_directory
from securebench._removal import remove_tree

DEPTH = 5000


def _deep(top: Path, depth: int, mode: int = 0o755) -> None:
    """A chain of directories with a file in each, made through descriptors, because its path is too long."""
    directory = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 20, 0o700, dir_fd=directory)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory))
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=directory)
        os.fchmod(directory, mode)
        os.close(directory)
        directory = inner
    os.close(directory)


def test_deep_tree_on_which_the_standard_library_gives_up(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    _deep(top, DEPTH)
    with pytest.raises((RecursionError, OSError)):
        shutil.rmtree(top)
    remove_tree(top)
    assert not top.exists()


def test_staging_directory_goes_away_however_deep_and_closed_it_is() -> None:
    with staging_directory() as path:
        _deep(path, 1200, mode=0)
    assert not path.exists()


def test_modes_do_not_matter_to_an_ordinary_user(tmp_path: Path) -> None:
    """Root may do anything, so the test runs as nobody."""
    program = (
        "import os, pathlib, shutil, sys\n"
        "sys.path.append(sys.argv[1])\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(61998); os.setuid(61998)\n"
        "from securebench._removal import remove_tree\n"
        "top = pathlib.Path(sys.argv[2], 'top')\n"
        "(top / 'a' / 'b' / 'c').mkdir(parents=True)\n"
        "(top / 'a' / 'b' / 'c' / 'file').touch(mode=0)\n"
        "(top / 'a' / 'empty').mkdir(mode=0)\n"
        "for inner in ('a/b/c', 'a/b', 'a', '.'): (top / inner).chmod(0)\n"
        "try: shutil.rmtree(top); print('removed too early')\n"
        "except OSError: pass\n"
        "remove_tree(top)\n"
        "print(top.exists())\n"
    )
    place, source = Path("/tmp", f"securebench-removal-{os.getpid()}"), Path(__file__).parents[3] / "src"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    shutil.copytree(source / "securebench", place / "lib" / "securebench", ignore=lambda _, names: [
        name for name in names if name not in ("__init__.py", "_removal.py")
    ])  # fmt: skip
    try:
        interpreter = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
        argv = [interpreter, "-I", "-B", "-c", program, str(place / "lib"), str(place)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert (done.stdout.strip(), done.stderr) == ("False", "")
    finally:
        remove_tree(place)


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top = tmp_path / "top"
    (top / "inner").mkdir(parents=True)
    (top / "link").symlink_to(outside)
    (top / "inner" / "link").symlink_to(outside)
    os.mkfifo(top / "inner" / "pipe")
    remove_tree(top)
    assert not top.exists()
    assert (outside / "kept").exists()


def test_link_in_place_of_the_tree_is_only_unlinked(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    remove_tree(tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["real"]


def test_nothing_there_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "none")
    remove_tree(tmp_path / "none" / "deeper")


def test_what_cannot_be_removed_is_an_error_and_the_rest_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "top"
    (top / "a").mkdir(parents=True)
    (top / "a" / "stuck").touch()
    (top / "b").touch()
    unlink = os.unlink

    def refuse(name: str, **how: int) -> None:
        if name == "stuck":
            raise PermissionError(1, "immutable")
        unlink(name, **how)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError, match="immutable"):
        remove_tree(top)
    assert [path.name for path in top.iterdir()] == ["a"]
