"""Archives made to write, read or exhaust something outside their image.

Each escape has a positive control: `tarfile.extractall` without a filter, fed the same bytes, is fooled."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from securebench.errors import ConfigError, IntegrityError, SecureBenchError
from securebench.images._layers import Layer, apply_layer
from securebench.images._streams import Blob
from securebench.images._writer import RootfsWriter
from securebench.images.budget import Budget, ImportLimits
from securebench.images.store import ImageStore
from tests.unit.images.builders import (
    BLOCK,
    Image,
    archive,
    blob_path,
    directory,
    file,
    hardlink,
    header,
    make_store,
    naive_extract,
    oci_files,
    pax,
    saved_files,
    special,
    symlink,
    tiny_rootfs,
    write_tar,
)

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


def store_is_clean(store: ImageStore) -> bool:
    """Nothing but whole images, and nothing left over."""
    allowed = {".lock", "names.json", "sha256", "tmp"}
    images = list((store.root / "sha256").iterdir())
    whole = all({path.name for path in image.iterdir()} == {"rootfs", "config.json", "record.json"} for image in images)
    return whole and {path.name for path in store.root.iterdir()} <= allowed and not any((store.root / "tmp").iterdir())


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


class TestBombs:
    """Every one ends within its budget."""

    LIMITS = ImportLimits(
        members=5000, file_bytes=2**20, total_bytes=2**23, ratio_allowance=2**20, ratio=100, steps=100_000
    )

    def refused(self, tmp_path: Path, source: str) -> str:
        store = make_store(tmp_path / "store", self.LIMITS)
        began = time.monotonic()
        with pytest.raises(ConfigError) as caught:
            store.import_image(source)
        assert time.monotonic() - began < 10
        assert store_is_clean(store)
        return str(caught.value)

    def layer(self, tmp_path: Path, *members: bytes) -> str:
        return self.refused(tmp_path, write_tar(tmp_path / "image.tar", oci_files(Image(archive(*members)))))

    def test_high_ratio(self, tmp_path: Path) -> None:
        assert "to 1 is allowed" in self.layer(tmp_path, *[file(f"zeros{i}", bytes(2**20)) for i in range(4)])

    def test_an_image_compressed_as_a_whole(self, tmp_path: Path) -> None:
        (tmp_path / "bomb.tar.gz").write_bytes(gzip.compress(bytes(2**22)))
        assert "to 1 is allowed" in self.refused(tmp_path, str(tmp_path / "bomb.tar.gz"))

    def test_gzip_within_gzip_is_not_a_tar(self, tmp_path: Path) -> None:
        (tmp_path / "nested.gz").write_bytes(gzip.compress(gzip.compress(gzip.compress(bytes(2**26)))))
        assert "header" in self.refused(tmp_path, str(tmp_path / "nested.gz"))

    def test_many_empty_gzip_members(self, tmp_path: Path) -> None:
        (tmp_path / "many.gz").write_bytes(gzip.compress(b"x") + gzip.compress(b"") * 100_000)
        assert "more than 5000 members" in self.refused(tmp_path, str(tmp_path / "many.gz"))

    def test_a_file_larger_than_allowed(self, tmp_path: Path) -> None:
        (tmp_path / "root.tar").write_bytes(archive(header(b"big", size=2**40)))
        assert "ends within" in self.refused(tmp_path, str(tmp_path / "root.tar"))
        assert "big: it has" in self.layer(tmp_path, header(b"big", size=2**40))

    def test_more_bytes_than_allowed(self, tmp_path: Path) -> None:
        noise = os.urandom(2**19)
        assert "holds more than" in self.layer(tmp_path, *[file(f"f{i}", noise) for i in range(20)])

    def test_more_members_than_allowed(self, tmp_path: Path) -> None:
        (tmp_path / "root.tar").write_bytes(archive(*[file("f")] * 5001))
        assert "more than 5000 members" in self.refused(tmp_path, str(tmp_path / "root.tar"))

    def test_links_that_make_every_path_long(self, tmp_path: Path) -> None:
        winding = "/".join(["x/.."] * 500)
        members = [directory("x"), symlink("l0", winding)]
        members += [symlink(f"l{i + 1}", f"l{i}/{winding}") for i in range(30)]
        members += [part for i in range(100) for part in (symlink("y", "x"), file(f"l30/f{i}"))]
        assert "more than 100000 steps" in self.layer(tmp_path, *members)

    def test_layers_that_hide_each_others_directories_over_and_over(self, tmp_path: Path) -> None:
        store = make_store(tmp_path / "store")
        nested = "/".join("d" * 100)
        lower = [file(f"{nested}/f{i}") for i in range(1000)]
        upper = [*lower, *[file(f"{nested[: 2 * depth]}.wh..wh..opq") for depth in range(100)] * 20]
        began = time.monotonic()
        store.import_image(write_tar(tmp_path / "image.tar", oci_files(Image(archive(*lower), archive(*upper)))))
        assert time.monotonic() - began < 20

    def test_a_file_with_many_names_is_digested_once(self, tmp_path: Path) -> None:
        store = make_store(tmp_path / "store")
        members = [file("f", bytes(2**24)), *[hardlink(f"l{i}", "f") for i in range(2000)]]
        began = time.monotonic()
        image = store.import_image(write_tar(tmp_path / "image.tar", oci_files(Image(archive(*members)))))
        assert time.monotonic() - began < 20
        assert image.record.bytes == 2**24


class TestDamage:
    """Bytes that are not those promised."""

    def test_a_changed_layer(self, store: ImageStore, tmp_path: Path) -> None:
        for compress in (True, False):
            files = oci_files(Image(), compress=compress)
            name = max(files, key=lambda key: len(files[key]) if key.startswith("blobs") else 0)
            files[name] = files[name][:-20] + bytes([files[name][-20] ^ 1]) + files[name][-19:]
            with pytest.raises(IntegrityError, match="was promised"):
                store.import_image(write_tar(tmp_path / "image.tar", files))
            assert store_is_clean(store)

    def test_a_layer_replaced_by_another_valid_one(self, store: ImageStore, tmp_path: Path) -> None:
        image, other = Image(), Image(archive(file("bin/sh", b"evil")))
        saved = saved_files(image)
        saved = {name: other.layers[0] if name.endswith("layer.tar") else data for name, data in saved.items()}
        with pytest.raises(IntegrityError, match="uncompressed bytes"):
            store.import_image(write_tar(tmp_path / "saved.tar", saved))
        files = oci_files(image, compress=False)
        files[blob_path(image.layers[0])] = other.layers[0]
        with pytest.raises(IntegrityError):
            store.import_image(write_tar(tmp_path / "oci.tar", files))
        assert store.list() == []

    def test_a_changed_manifest_or_config(self, store: ImageStore, tmp_path: Path) -> None:
        for name, data in oci_files(Image()).items():
            if name.startswith("blobs") and data.startswith(b"{"):
                files = {**oci_files(Image()), name: data.replace(b"a", b"b", 1)}
                with pytest.raises(IntegrityError, match="was promised"):
                    store.import_image(write_tar(tmp_path / "image.tar", files))

    def test_a_truncated_layer(self, store: ImageStore, tmp_path: Path) -> None:
        files = oci_files(Image())
        name = next(key for key, data in files.items() if data.startswith(b"\x1f\x8b"))
        files[name] = files[name][:-10]
        with pytest.raises(IntegrityError, match="bytes"):
            store.import_image(write_tar(tmp_path / "image.tar", files))

    def test_a_truncated_tarball(self, store: ImageStore, tmp_path: Path) -> None:
        whole = gzip.compress(archive(*tiny_rootfs()))
        for cut in (len(whole) - 4, len(whole) // 2, 12):
            (tmp_path / "root.tgz").write_bytes(whole[:cut])
            with pytest.raises(ConfigError, match="ends too early"):
                store.import_image(str(tmp_path / "root.tgz"))
        (tmp_path / "root.tgz").write_bytes(whole + b"trailing")
        with pytest.raises(ConfigError, match="damaged"):
            store.import_image(str(tmp_path / "root.tgz"))
        assert store_is_clean(store)

    def test_a_layer_that_expands_to_something_else_than_the_config_says(
        self, store: ImageStore, tmp_path: Path
    ) -> None:
        image, other = Image(), Image(archive(file("bin/sh", b"evil")))
        image.layers = other.layers  # a manifest with honest digests over the wrong content
        with pytest.raises(IntegrityError, match="uncompressed bytes"):
            store.import_image(write_tar(tmp_path / "image.tar", oci_files(image)))


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


PART = st.sampled_from(["a", "b", "c", "..", ".", "", ".wh.a", ".wh..wh..opq", "outside", "host"])
PATH = st.lists(PART, min_size=1, max_size=4).map("/".join)
MEMBER = st.one_of(
    st.builds(file, PATH, st.just(b"x")),
    st.builds(directory, PATH),
    st.builds(symlink, PATH, st.one_of(PATH, PATH.map(lambda path: f"/{path}"), PATH.map(lambda path: f"../{path}"))),
    st.builds(hardlink, PATH, PATH),
    st.builds(special, PATH),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(members=st.lists(MEMBER, max_size=12))
def test_no_sequence_of_members_gets_out(tmp_path_factory: pytest.TempPathFactory, members: list[bytes]) -> None:
    base = tmp_path_factory.mktemp("sequence")
    outside = base / "outside"
    outside.mkdir()
    (outside / "host").write_bytes(SECRET)
    try:
        unpack_into(base / "root", archive(*members), base / "packed")
    except SecureBenchError as error:
        assert "member" in str(error)
    assert untouched(outside)
    assert {path.name for path in base.iterdir()} == {"outside", "packed", "root"}


@settings(max_examples=100, deadline=None)
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
    try:
        unpack_into(base / "root", bytes(data), base / "packed")
    except SecureBenchError:
        pass
    assert {path.name for path in base.iterdir()} == {"packed", "root"}


def zlib_gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(data) + packer.flush()


@pytest.mark.slow
def test_a_hundred_thousand_members_are_imported_in_reasonable_time(store: ImageStore, tmp_path: Path) -> None:
    members = [file(f"usr/share/d{i // 200}/f{i}", b"x" * (i % 50)) for i in range(100_000)]
    source = write_tar(tmp_path / "image.tar", oci_files(Image(archive(*members)), compress=False))
    began = time.monotonic()
    image = store.import_image(source)
    seconds = time.monotonic() - began
    assert image.record.files == 100_000
    assert seconds < 120
