"""An image that goes from one store to another arrives as exactly that image, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import pytest
from tests.unit.images.builders import (
    Image,
    archive,
    directory,
    file,
    hardlink,
    make_store,
    oci_files,
    store_is_clean,
    symlink,
    write_tar,
)

from securebench.errors import IntegrityError, SandboxUnavailable
from securebench.images._tree import remove_entry
from securebench.images.store import ImageStore, SentImage


@pytest.fixture
def other(tmp_path: Path) -> Iterator[ImageStore]:
    yield make_store(tmp_path / "other")
    if (tmp_path / "other").exists():
        parent = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        remove_entry(parent, b"other")
        os.close(parent)


def stream(store: ImageStore, reference: str) -> BinaryIO:
    spool = cast(BinaryIO, TemporaryFile())  # noqa: SIM115 — closed with the test
    for piece in store.send(store.resolve(reference)):
        spool.write(piece)
    spool.flush()
    return spool


def tarball(tmp_path: Path) -> str:
    path = tmp_path / "root.tar"
    members = [
        directory("bin"),
        file("bin/tool", b"x" * 70_000, mode=0o755),
        file("empty"),
        symlink("bin/alias", "tool"),
    ]
    path.write_bytes(archive(*members, directory("d" * 60), symlink("up", "/bin"), hardlink("again", "bin/tool")))
    return str(path)


@pytest.mark.parametrize("kind", ["config of its own", "tarball without one"])
def test_an_image_arrives_with_its_name_digest_and_tree(
    store: ImageStore, other: ImageStore, tmp_path: Path, kind: str
) -> None:
    if kind == "tarball without one":
        image = store.import_image(tarball(tmp_path), "tiny:1")
    else:
        image = store.import_image(write_tar(tmp_path / "image.tar", oci_files(Image(), "tiny:1")))
    with stream(store, "tiny:1") as sent:
        arrived = other.receive(sent.fileno(), store.sent("tiny:1"))
    assert (arrived.digest, arrived.record.tree, arrived.config) == (image.digest, image.record.tree, image.config)
    assert other.resolve("tiny:1") == arrived
    other.verify(arrived.digest)
    assert store_is_clean(other)


def test_a_pinned_name_arrives_as_one(store: ImageStore, other: ImageStore, tmp_path: Path) -> None:
    image = store.import_image(write_tar(tmp_path / "image.tar", oci_files(Image(), "tiny:1")))
    pinned = f"tiny:1@{image.digest}"
    with stream(store, pinned) as sent:
        other.receive(sent.fileno(), store.sent(pinned))
    assert other.resolve(pinned).digest == image.digest


def _another_config(image: SentImage) -> SentImage:
    return replace(image, config=image.config + b" ")


def _another_tree(image: SentImage) -> SentImage:
    return replace(image, tree="sha256:" + "0" * 64)


@pytest.mark.parametrize("change", [_another_config, _another_tree])
def test_another_image_than_was_named_is_refused_and_nothing_stays(
    store: ImageStore, other: ImageStore, tmp_path: Path, change: object
) -> None:
    store.import_image(tarball(tmp_path), "tiny:1")
    with stream(store, "tiny:1") as sent, pytest.raises(IntegrityError):
        other.receive(sent.fileno(), change(store.sent("tiny:1")))  # type: ignore[operator]
    assert other.list() == []
    assert not (other.root / "sha256").exists() or store_is_clean(other)
    with pytest.raises(SandboxUnavailable):
        other.resolve("tiny:1")


def test_changed_bytes_on_the_way_are_refused(store: ImageStore, other: ImageStore, tmp_path: Path) -> None:
    store.import_image(tarball(tmp_path), "tiny:1")
    with stream(store, "tiny:1") as sent:
        sent.seek(0)
        data = sent.read()
    with TemporaryFile() as changed:
        changed.write(data.replace(b"x" * 1000, b"y" * 1000, 1))
        changed.flush()
        with pytest.raises(IntegrityError, match="another tree"):
            other.receive(changed.fileno(), store.sent("tiny:1"))
    assert other.list() == []
