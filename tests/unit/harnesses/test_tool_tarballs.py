"""Packages are strangers' archives: what a tarball may hold, and every way it may not."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path

import pytest
from tests.unit.harnesses.toy_registry import integrity, tarball
from tests.unit.images.builders import archive, directory, file, hardlink, header, pax, special, symlink

from securebench._fs import EPOCH_NS
from securebench.errors import IntegrityError
from securebench.harnesses.tools.integrity import integrity_of, parse_integrity, verify_integrity
from securebench.harnesses.tools.tarball import LIMITS, unpack
from securebench.images.budget import ImportLimits


def unpacked(tmp_path: Path, data: bytes, limits: ImportLimits = LIMITS) -> Path:
    (tmp_path / "package.tgz").write_bytes(data)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "root").mkdir()
    packed = os.open(tmp_path / "package.tgz", os.O_RDONLY)
    root = os.open(tmp_path / "outside" / "root", os.O_RDONLY | os.O_DIRECTORY)
    try:
        unpack(packed, root, "toy@1.0.0", limits)
    finally:
        os.close(packed)
        os.close(root)
    return tmp_path / "outside" / "root"


def refused(tmp_path: Path, data: bytes, limits: ImportLimits = LIMITS) -> str:
    with pytest.raises(IntegrityError) as caught:
        unpacked(tmp_path, data, limits)
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["root"], "something was written outside"
    assert str(caught.value).startswith("toy@1.0.0 ")
    return str(caught.value)


def test_files_are_readable_and_programs_executable_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        root = unpacked(
            tmp_path,
            tarball(
                directory("package/bin", mode=0o700),
                file("package/bin/tool", b"tool", mode=0o700),
                file("package/deep/er/note", b"note", mode=0o600),
                file("package/set", b"", mode=0o4711),
            ),
        )
    finally:
        os.umask(before)
    modes = {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
    assert modes == {
        "bin": 0o755,
        "bin/tool": 0o755,
        "deep": 0o755,
        "deep/er": 0o755,
        "deep/er/note": 0o644,
        "set": 0o755,
    }
    assert (root / "bin/tool").read_bytes() == b"tool"
    assert (root / "bin/tool").stat().st_mtime_ns == EPOCH_NS


def test_the_top_directory_may_have_any_name_and_be_listed_itself(tmp_path: Path) -> None:
    root = unpacked(tmp_path, tarball(directory("node-v22/"), file("node-v22/bin/node", b"n")))
    assert (root / "bin/node").read_bytes() == b"n"


def test_names_of_extension_headers_are_judged_too(tmp_path: Path) -> None:
    assert "must stay beneath" in refused(tmp_path, tarball(pax({"path": b"package/../../x"}), file("package/x", b"x")))


@pytest.mark.parametrize(
    ("member", "rule"),
    [
        (symlink("package/x", "/etc/passwd"), "a symbolic link; packages hold files and directories only"),
        (symlink("package/x", "y"), "a symbolic link"),
        (hardlink("package/x", "package/ok"), "a hard link"),
        (special("package/x", b"3"), "a special file"),
        (special("package/x", b"6"), "a special file"),
        (file("/etc/x", b"x"), "absolute"),
        (file("package/../../x", b"x"), "must stay beneath"),
        (file("..", b"x"), "must stay beneath"),
        (file("package/./x", b"x"), "empty part or '.'"),
        (file("package//x", b"x"), "empty part or '.'"),
        (file("package\\x", b"x"), "backslash"),
        (file("package/a\nb", b"x"), "control or invisible"),
        (file(b"package/\xff", b"x"), "utf-8"),
        (file("other/x", b"x"), "outside the package's directory package"),
        (file("package", b"x"), "where the package's directory must be"),
        (file("package/ok", b"x"), "the same name came before"),
        (file("package/ok/x", b"x"), "beneath a file"),
        (directory("package/ok"), "a file of that name came before"),
        (file("package/" + "d/" * 40 + "x", b"x"), "deeper than 32 directories"),
        (file("package/" + "n" * 256, b"x"), "longer than 255"),
    ],
    ids=range(20),
)
def test_hostile_member_ends_the_import(tmp_path: Path, member: bytes, rule: str) -> None:
    said = refused(tmp_path, tarball(file("package/ok", b"ok"), member))
    assert rule in said
    assert "member " in said


def test_a_link_planted_first_is_not_written_through(tmp_path: Path) -> None:
    assert "symbolic link" in refused(tmp_path, tarball(symlink("package/d", ".."), file("package/d/x", b"x")))


SMALL = ImportLimits(members=50, file_bytes=2**16, total_bytes=2**18, ratio=10, ratio_allowance=2**17, depth=8)


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (tarball(*[file(f"package/{n}", b"") for n in range(60)]), "more than 50 members"),
        (tarball(file("package/x", bytes(2**16 + 1))), "at most 65536 are allowed"),
        (tarball(*[file(f"package/{n}", bytes(2**15)) for n in range(6)]), "at most 10 to 1 is allowed"),
        (tarball(*[file(f"package/{n}", os.urandom(2**15)) for n in range(9)]), "more than 262144 bytes"),
        (tarball(header(b"package/x", size=2**40)), "at most 65536 are allowed"),
        (tarball(), "it holds no file"),
        (gzip.compress(b"not a tar" * 100), "checksum"),
        (archive(file("package/x", b"x")), "is not gzip"),
        (b"", "is not gzip"),
        (tarball(file("package/x", os.urandom(4096)))[:-2000], "ends too early"),
        (tarball(file("package/x", b"x")) + b"more", "its gzip data is damaged"),
    ],
    ids=["members", "file", "ratio", "total", "claim", "empty", "no tar", "no gzip", "nothing", "cut off", "more"],
)
def test_bombs_and_damage_end_the_import(tmp_path: Path, data: bytes, rule: str) -> None:
    assert rule in refused(tmp_path, data, SMALL)


def test_integrity_is_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"data" * 1_000_000)
    descriptor = os.open(tmp_path / "x", os.O_RDONLY)
    assert integrity_of(descriptor) == integrity(b"data" * 1_000_000)
    os.close(descriptor)
    verify_integrity("x", integrity(b"data"), integrity(b"data"), "the registry")


@pytest.mark.parametrize("promised", [integrity(b"other"), "", "sha1-AAAA", "sha512-AAAA", "sha512-" + "A" * 88])
def test_integrity_that_differs_or_is_weak_is_refused(promised: str) -> None:
    with pytest.raises(IntegrityError, match="the registry"):
        verify_integrity("toy@1.0.0", integrity(b"data"), promised, "the registry")


@pytest.mark.parametrize(
    "text",
    [
        integrity(b"x") + " " + integrity(b"y"),
        integrity(b"x") + "\n",
        integrity(b"x").replace("sha512", "SHA512"),
        integrity(b"x")[:-3] + "B==",  # the same bytes, spelled with other left-over bits
        integrity(b"x") + "?opt",
    ],
)
def test_only_one_spelling_of_an_integrity_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_integrity(text)
