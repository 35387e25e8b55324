"""What several layers make together, and what is kept of each file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.unit.images.builders import (
    Image,
    archive,
    directory,
    file,
    hardlink,
    header,
    oci_files,
    pax,
    special,
    symlink,
    write_tar,
)

from securebench.errors import ConfigError
from securebench.images.store import ImageStore, StoredImage


def unpack(store: ImageStore, tmp_path: Path, *layers: list[bytes]) -> StoredImage:
    image = Image(*(archive(*members) for members in layers))
    return store.import_image(write_tar(tmp_path / "image.tar", oci_files(image)), "test:1")


def tree(image: StoredImage) -> dict[str, str]:
    """Every path with what it is: the text of a file, the target of a link, `/` for a directory."""
    found = {}
    for parent, directories, files in os.walk(image.rootfs):
        for name in directories + files:
            path = Path(parent) / name
            inner = str(path.relative_to(image.rootfs))
            if path.is_symlink():
                found[inner] = f"-> {os.readlink(path)}"
            else:
                found[inner] = "/" if path.is_dir() else path.read_text()
    return found


def test_an_upper_layer_replaces_and_adds(store: ImageStore, tmp_path: Path) -> None:
    image = unpack(store, tmp_path, [file("a/x", b"1"), file("a/y", b"1")], [file("a/x", b"2"), file("b", b"2")])
    assert tree(image) == {"a": "/", "a/x": "2", "a/y": "1", "b": "2"}


def test_a_whiteout_removes_a_file_and_a_directory(store: ImageStore, tmp_path: Path) -> None:
    lower = [file("keep", b"1"), file("gone", b"1"), file("d/e/f", b"1")]
    image = unpack(store, tmp_path, lower, [file(".wh.gone"), file(".wh.d"), file(".wh.never-was"), file("no/.wh.x")])
    assert tree(image) == {"keep": "1"}


def test_a_whiteout_spares_what_its_own_layer_brings(store: ImageStore, tmp_path: Path) -> None:
    lower = [file("a", b"1"), file("d/old", b"1"), file("d/e/old", b"1")]
    upper = [file("a", b"2"), file(".wh.a"), file("d/e/new", b"2"), file(".wh.d")]
    for order in (upper, upper[::-1]):
        image = unpack(store, tmp_path, lower, order)
        assert tree(image) == {"a": "2", "d": "/", "d/e": "/", "d/e/new": "2"}


def test_an_opaque_directory_hides_all_lower_entries_in_any_order(store: ImageStore, tmp_path: Path) -> None:
    lower = [file("d/old", b"1"), file("d/sub/old", b"1"), file("other", b"1")]
    upper = [directory("d"), file("d/.wh..wh..opq"), file("d/sub/new", b"2"), file("d/new", b"2")]
    for order in (upper, upper[::-1]):
        image = unpack(store, tmp_path, lower, order)
        assert tree(image) == {"d": "/", "d/new": "2", "d/sub": "/", "d/sub/new": "2", "other": "1"}


def test_an_opaque_root_hides_everything_below(store: ImageStore, tmp_path: Path) -> None:
    image = unpack(store, tmp_path, [file("a/b", b"1")], [file("c", b"2"), file(".wh..wh..opq")])
    assert tree(image) == {"c": "2"}


def test_whiteouts_work_through_links_and_never_remove_what_a_link_points_at(store: ImageStore, tmp_path: Path) -> None:
    lower = [file("real/x", b"1"), file("real/y", b"1"), symlink("link", "real"), symlink("lone", "real")]
    image = unpack(store, tmp_path, lower, [file("link/.wh.x"), file(".wh.lone")])
    assert tree(image) == {"real": "/", "real/y": "1", "link": "-> real"}


def test_names_reserved_by_union_file_systems_are_dropped(store: ImageStore, tmp_path: Path) -> None:
    image = unpack(store, tmp_path, [file("a", b"1")], [directory(".wh..wh.plnk"), file(".wh..wh.aufs")])
    assert tree(image) == {"a": "1"}


def test_a_path_through_a_link_is_resolved_inside(store: ImageStore, tmp_path: Path) -> None:
    lower = [directory("usr/lib"), symlink("lib", "usr/lib"), symlink("usr/up", "../../../usr"), symlink("abs", "/usr")]
    upper = [file("lib/a", b"1"), file("usr/up/b", b"2"), file("abs/c", b"3")]
    image = unpack(store, tmp_path, lower, upper)
    found = tree(image)
    assert (found["usr/lib/a"], found["usr/b"], found["usr/c"]) == ("1", "2", "3")
    assert found["lib"] == "-> usr/lib"


def test_a_dangling_link_on_the_way_gets_its_directory(store: ImageStore, tmp_path: Path) -> None:
    image = unpack(store, tmp_path, [symlink("run", "/var/run")], [file("run/pid", b"1")])
    assert tree(image) == {"run": "-> /var/run", "var": "/", "var/run": "/", "var/run/pid": "1"}


def test_the_last_name_is_replaced_not_followed(store: ImageStore, tmp_path: Path) -> None:
    lower = [file("target", b"1"), symlink("f", "target"), directory("t"), symlink("d", "t"), file("x/y", b"1")]
    image = unpack(store, tmp_path, lower, [file("f", b"2"), directory("d"), file("x", b"2")])
    assert tree(image) == {"target": "1", "f": "2", "t": "/", "d": "/", "x": "2"}


def test_a_link_replaced_by_another_leads_elsewhere(store: ImageStore, tmp_path: Path) -> None:
    members = [directory("one"), directory("two"), symlink("l", "one"), file("l/a", b"1"), symlink("l", "two")]
    image = unpack(store, tmp_path, [*members, file("l/b", b"2")])
    assert tree(image) == {"one": "/", "one/a": "1", "two": "/", "two/b": "2", "l": "-> two"}


def test_hard_links_stay_one_file(store: ImageStore, tmp_path: Path) -> None:
    image = unpack(
        store, tmp_path, [file("d/a", b"1"), hardlink("b", "/d/a"), symlink("l", "d")], [hardlink("c", "l/a")]
    )
    assert {(image.rootfs / name).stat().st_ino for name in "bc"} == {(image.rootfs / "d/a").stat().st_ino}
    assert image.record.bytes == 1


def test_modes_owners_and_times_are_normalised(store: ImageStore, tmp_path: Path) -> None:
    members = [
        directory("d", mode=0o000),
        file("d/none", b"1", mode=0o000),
        file("d/suid", b"1", mode=0o6755, mtime=1234),
        file("d/owner-x", b"1", mode=0o700),
        pax({"SCHILY.xattr.security.capability": b"\1\0\0\2" + bytes(16), "mtime": b"77.5"}),
        header(b"d/caps", mode=0o755),
        pax({"mtime": b"-5"}),
        header(b"d/before", mode=0o644),
        pax({"mtime": b"99999999999999"}),
        header(b"d/after", mode=0o644),
    ]
    image = unpack(store, tmp_path, members)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (image.rootfs / "d").iterdir()}
    expected = {"none": 0o444, "suid": 0o555, "owner-x": 0o555, "caps": 0o555, "before": 0o444, "after": 0o444}
    assert modes == expected
    assert stat.S_IMODE((image.rootfs / "d").stat().st_mode) == 0o555
    assert (image.rootfs / "d/suid").stat().st_mtime == 1234
    assert (image.rootfs / "d/caps").stat().st_mtime == 77.5
    assert (image.rootfs / "d/before").stat().st_mtime == 0
    assert os.listxattr(image.rootfs / "d/caps") == []
    assert (image.rootfs / "d/suid").stat().st_uid == os.geteuid()


def test_devices_and_pipes_are_counted_not_made(store: ImageStore, tmp_path: Path) -> None:
    nodes = [special("dev/null", b"3"), special("dev/sda", b"4"), special("pipe", b"6")]
    image = unpack(store, tmp_path, [file("pipe", b"1"), file("a", b"1")], nodes)
    assert tree(image) == {"a": "1"}
    assert image.record.skipped == 3


def test_names_need_not_be_text(store: ImageStore, tmp_path: Path) -> None:
    names = [b"\xff\xfe", b"new\nline", b"-rf", b"\x1b[31m", b"back\\slash", "ü".encode(), b".wh.".upper(), b" "]
    image = unpack(store, tmp_path, [file(name, b"1") for name in names])
    assert sorted(os.listdir(os.fsencode(image.rootfs))) == sorted(names)
    store.verify(image.digest)


def test_absolute_and_dotted_names_begin_at_the_images_root(store: ImageStore, tmp_path: Path) -> None:
    image = unpack(store, tmp_path, [file("/etc/a", b"1"), file("./etc//b", b"2"), directory("."), directory("/")])
    assert tree(image) == {"etc": "/", "etc/a": "1", "etc/b": "2"}


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ([file("."), file("a")], "root directory"),
        ([symlink("/", "x")], "root directory"),
        ([symlink("a", "")], "link target"),
        ([file("f"), file("f/x")], "not a directory"),
        ([symlink("f", "g"), file("g"), file("f/x")], "not a directory"),
        ([symlink("a", "b"), symlink("b", "a"), file("a/x")], "links on the way"),
        ([hardlink("a", "nothing")], "hard link"),
        ([file("a"), hardlink("a", "a")], "hard link"),
        ([directory("d"), hardlink("a", "d")], "hard link"),
        ([hardlink("a", "/")], "hard link"),
        ([hardlink("a", "../../x")], r"'\.\.'"),
        ([file("a" * 256)], "longer than 255"),
        ([file("a/" * 2500 + "b")], "longer than 4096"),
        ([file("d/" * 130 + "b")], "directories deep"),
        ([pax({"path": b"a\0b"}), file("x")], "NUL"),
    ],
)
def test_members_that_make_no_sense_are_refused_by_name(
    store: ImageStore, tmp_path: Path, members: list[bytes], rule: str
) -> None:
    with pytest.raises(ConfigError, match=rule) as caught:
        unpack(store, tmp_path, [file("ok", b"1"), *members])
    assert "layer 1" in str(caught.value)
    assert "member" in str(caught.value)
    assert store.list() == []
