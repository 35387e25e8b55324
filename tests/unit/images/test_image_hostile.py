"""Archives made to write, read or exhaust something outside their image.

Each escape has a positive control: `tarfile.extractall` without a filter, fed the same bytes, is fooled."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.images.builders import (
    BLOCK,
    Image,
    archive,
    directory,
    file,
    hardlink,
    naive_extract,
    oci_files,
    pax,
    saved_files,
    special,
    store_is_clean,
    symlink,
    tiny_rootfs,
    write_tar,
)

from securebench.errors import ConfigError, IntegrityError, SecureBenchError
from securebench.images._layers import Layer, apply_layer
from securebench.images._streams import Blob
from securebench.images._writer import RootfsWriter
from securebench.images.budget import Budget, ImportLimits
from securebench.images.store import ImageStore

SECRET = b"the host's own bytes"
Members = Callable[[Path], list[bytes]]

# Each is given the directory outside. `host` in it is a file that must stay as it is, and stay alone.
ESCAPES: dict[str, Members] = {
    "parent": lambda _: [file("../outside/host", b"x")],
    "parent in the middle": lambda _: [directory("a"), file("a/../../outside/host", b"x")],
    "absolute": lambda outside: [file(f"{outside}/host", b"x")],
    "absolute after pax": lambda outside: [pax({"path": os.fsencode(outside / "host")}), file("harmless", b"x")],
    "link, then through it": lambda outside: [symlink("d", f"{outside}"), file("d/host", b"x")],
    "relative link, then through it": lambda _: [symlink("d", "../outside"), file("d/host", b"x")],
    "chain of links": lambda outside: [symlink("a", "b"), symlink("b", f"{outside}"), file("a/host", b"x")],
    "link beneath a link": lambda outside: [
        directory("d"),
        symlink("d/up", ".."),
        symlink("e", "d/up/../outside"),
        file("e/host", b"x"),
    ],
    "file link, then onto it": lambda outside: [symlink("f", f"{outside}/host"), file("f/../f", b"x")],
    "directory becomes a link": lambda outside: [
        directory("d"),
        file("d/a", b"1"),
        *[symlink("d", f"{outside}"), file("d/host", b"x")],
    ],
    "new file through a link": lambda outside: [symlink("d", f"{outside}"), file("d/new", b"x")],
    "new directory through a link": lambda outside: [symlink("d", f"{outside}"), directory("d/new")],
    "new link through a link": lambda outside: [symlink("d", f"{outside}"), symlink("d/new", "x")],
    "hard link to a host file": lambda outside: [hardlink("stolen", f"{outside}/host")],
    "hard link upwards": lambda _: [hardlink("stolen", "../outside/host")],
    "hard link through a link": lambda outside: [symlink("d", f"{outside}"), hardlink("stolen", "d/host")],
    "hard link, then onto it": lambda outside: [hardlink("f", f"{outside}/host"), file("f", b"x")],
}
# The naive reader replaces what is there before it writes, so these do not fool it; others have been fooled.
NOT_FOOLED = {"directory becomes a link", "file link, then onto it", "hard link, then onto it"}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "host").write_bytes(SECRET)
    return path


def untouched(outside: Path) -> bool:
    host = outside / "host"
    names = [path.name for path in outside.iterdir()]
    return names == ["host"] and host.read_bytes() == SECRET and host.stat().st_nlink == 1


def attempt(store: ImageStore, source: str) -> str:
    """Imports or refuses; anything else is a defect."""
    try:
        image = store.import_image(source, "hostile:1")
    except (ConfigError, IntegrityError) as error:
        return str(error)
    store.verify(image.digest)
    assert not any(SECRET in path.read_bytes() for path in image.rootfs.rglob("*") if is_file(path))
    return "imported"


def is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_outside_is_written_or_read(store: ImageStore, tmp_path: Path, outside: Path, name: str) -> None:
    layer = archive(*ESCAPES[name](outside))
    sources = {
        "oci": oci_files(Image(archive(*tiny_rootfs()), layer)),
        "saved": saved_files(Image(layer)),
    }
    for kind, files in sources.items():
        attempt(store, write_tar(tmp_path / f"{kind}.tar", files))
        assert untouched(outside), kind
    (tmp_path / "root.tar").write_bytes(layer)
    attempt(store, str(tmp_path / "root.tar"))
    assert untouched(outside)
    assert store_is_clean(store)


@pytest.mark.parametrize("name", sorted(set(ESCAPES) - NOT_FOOLED))
def test_control_the_naive_reader_is_fooled(tmp_path: Path, outside: Path, name: str) -> None:
    naive_extract(archive(*ESCAPES[name](outside)), tmp_path / "naive")
    assert not untouched(outside)


@pytest.mark.parametrize("name", ["..", ".", "", "/../../outside/host"])
def test_a_whiteout_of_something_outside_removes_nothing(
    store: ImageStore, tmp_path: Path, outside: Path, name: str
) -> None:
    layers = [archive(*tiny_rootfs()), archive(file(f".wh.{name}"), file(f"etc/.wh.{name}"))]
    said = attempt(store, write_tar(tmp_path / "image.tar", oci_files(Image(*layers))))
    assert "member" in said
    assert untouched(outside)
    assert store_is_clean(store)


def test_a_whiteout_through_a_link_stays_inside(store: ImageStore, tmp_path: Path, outside: Path) -> None:
    layers = [[*tiny_rootfs(), symlink("d", str(outside))], [file("d/.wh.host"), file("d/.wh..wh..opq")]]
    attempt(store, write_tar(tmp_path / "image.tar", oci_files(Image(*(archive(*layer) for layer in layers)))))
    assert untouched(outside)
    # Control: joining names the way a simple unpacker does removes the file.
    (tmp_path / "naive").mkdir()
    (tmp_path / "naive/d").symlink_to(outside)
    (tmp_path / "naive" / "d" / "host").unlink()
    assert not untouched(outside)


def test_one_name_of_every_kind_in_turn(store: ImageStore, tmp_path: Path, outside: Path) -> None:
    kinds = [directory("n"), symlink("n", str(outside)), file("n", b"1"), hardlink("n", "a"), special("n")]
    members = [file("a", b"1")]
    for first in kinds:
        for second in kinds:
            members += [first, second, directory("n"), file("n/child", b"1")]
    assert attempt(store, write_tar(tmp_path / "image.tar", oci_files(Image(archive(*members))))) == "imported"
    assert untouched(outside)


def unpack_into(root: Path, data: bytes, packed: Path) -> None:
    packed.write_bytes(data)
    root.mkdir()
    limits = ImportLimits(members=2000, file_bytes=2**22, total_bytes=2**24)
    top, source = os.open(root, os.O_RDONLY), os.open(packed, os.O_RDONLY)
    try:
        budget = Budget(limits)
        with RootfsWriter(top, budget) as writer:
            apply_layer(writer, Layer(Blob(source, 0, len(data)), "layer"), budget)
    finally:
        os.close(top)
        os.close(source)


def refusal(base: Path, data: bytes) -> str | None:
    """What our errors say, if the layer is refused; any other error is a defect."""
    try:
        unpack_into(base / "root", data, base / "packed")
    except SecureBenchError as error:
        return str(error)
    return None


PART = st.sampled_from(["a", "b", "c", "..", ".", "", ".wh.a", ".wh..wh..opq", "outside", "host"])
PATH = st.lists(PART, min_size=1, max_size=4).map("/".join)
MEMBER = st.one_of(
    st.builds(file, PATH, st.just(b"x")),
    st.builds(directory, PATH),
    st.builds(symlink, PATH, st.one_of(PATH, PATH.map(lambda path: f"/{path}"), PATH.map(lambda path: f"../{path}"))),
    st.builds(hardlink, PATH, PATH),
    st.builds(special, PATH),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(members=st.lists(MEMBER, max_size=12))
def test_no_sequence_of_members_gets_out(tmp_path_factory: pytest.TempPathFactory, members: list[bytes]) -> None:
    base = tmp_path_factory.mktemp("sequence")
    outside = base / "outside"
    outside.mkdir()
    (outside / "host").write_bytes(SECRET)
    said = refusal(base, archive(*members))
    assert said is None or "member" in said
    assert untouched(outside)
    assert {path.name for path in base.iterdir()} == {"outside", "packed", "root"}


@settings(max_examples=100)
@given(
    flips=st.lists(st.tuples(st.integers(0, 20 * BLOCK), st.integers(0, 255)), min_size=1, max_size=6),
    compressed=st.booleans(),
)
def test_no_flipped_bytes_make_anything_but_our_errors(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]], compressed: bool
) -> None:
    base = tmp_path_factory.mktemp("flips")
    plain = archive(*tiny_rootfs(), pax({"path": b"p", "mtime": b"1.5"}), file("x", b"data"), file("n" * 150, b"l"))
    data = bytearray(zlib_gzip(plain) if compressed else plain)
    for position, value in flips:
        data[position % len(data)] = value
    refusal(base, bytes(data))
    assert {path.name for path in base.iterdir()} == {"packed", "root"}


def zlib_gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(data) + packer.flush()
