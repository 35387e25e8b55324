"""Archives that cost too much, or whose bytes are not those promised."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.unit.images.builders import (
    Image,
    archive,
    blob_path,
    directory,
    file,
    hardlink,
    header,
    make_store,
    oci_files,
    saved_files,
    store_is_clean,
    symlink,
    tiny_rootfs,
    write_tar,
)

from securebench.errors import ConfigError, IntegrityError
from securebench.images.budget import ImportLimits
from securebench.images.store import ImageStore


class TestBombs:
    """Every one ends within its budget."""

    LIMITS = ImportLimits(
        members=5000, file_bytes=2**20, total_bytes=2**23, ratio_allowance=2**20, ratio=100, steps=100_000
    )

    def refused(self, tmp_path: Path, source: str) -> str:
        store = make_store(tmp_path / "store", self.LIMITS)
        began = time.process_time()
        with pytest.raises(ConfigError) as caught:
            store.import_image(source)
        assert time.process_time() - began < 10
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
        began = time.process_time()
        store.import_image(write_tar(tmp_path / "image.tar", oci_files(Image(archive(*lower), archive(*upper)))))
        assert time.process_time() - began < 20

    def test_a_file_with_many_names_is_digested_once(self, tmp_path: Path) -> None:
        store = make_store(tmp_path / "store")
        members = [file("f", bytes(2**24)), *[hardlink(f"l{i}", "f") for i in range(2000)]]
        began = time.process_time()
        image = store.import_image(write_tar(tmp_path / "image.tar", oci_files(Image(archive(*members)))))
        assert time.process_time() - began < 20
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


@pytest.mark.slow
def test_a_hundred_thousand_members_are_imported_in_reasonable_time(tmp_path: Path) -> None:
    members = [file(f"usr/share/d{i // 200}/f{i}", b"x" * (i % 50)) for i in range(100_000)]
    source = write_tar(tmp_path / "image.tar", oci_files(Image(archive(*members)), compress=False))
    memory = Path("/dev/shm")  # our own work is what is measured, not the disk's
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as root:
        store = make_store(Path(root) / "store")
        began = time.process_time()
        image = store.import_image(source, "many:1")
        assert time.process_time() - began < 60
        assert image.record.files == 100_000
        store.remove("many:1")
