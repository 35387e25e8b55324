"""Every kind of source gives the same image, and what cannot be used says why."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.unit.images.builders import (
    AMD64,
    INDEX,
    MANIFEST,
    Image,
    archive,
    blob_path,
    combined_files,
    descriptor,
    digest,
    file,
    index,
    oci_files,
    saved_files,
    symlink,
    tiny_rootfs,
    write_layout,
    write_tar,
)

from securebench.errors import ConfigError, IntegrityError
from securebench.images.store import ImageStore

SETTINGS = {"Env": ["PATH=/bin", "A=b=c"], "WorkingDir": "/srv", "User": "app:app", "Cmd": ["sh"], "Entrypoint": None}
ARM64 = {"os": "linux", "architecture": "arm64"}


def test_oci_archive_and_layout_and_both_saved_forms_are_one_image(store: ImageStore, tmp_path: Path) -> None:
    image = Image(config=SETTINGS)
    sources = [
        write_tar(tmp_path / "oci.tar", oci_files(image, "tiny:oci")),
        write_layout(tmp_path / "layout", oci_files(image)),
        write_tar(tmp_path / "saved.tar", saved_files(image, ["tiny:old"])),
        write_tar(tmp_path / "combined.tar", combined_files(image, "tiny:new")),
    ]
    digests = {store.import_image(source).digest for source in sources}
    assert digests == {image.id}
    stored = store.resolve("tiny:oci")
    assert stored.references == ("tiny:new", "tiny:oci", "tiny:old")
    assert dict(stored.config.env) == {"PATH": "/bin", "A": "b=c"}
    assert (stored.config.workdir, stored.config.user, stored.config.cmd) == ("/srv", "app:app", ("sh",))
    assert stored.config.entrypoint == ()
    assert (stored.rootfs / "bin/sh").read_bytes() == b"#!shell"
    assert os.readlink(stored.rootfs / "lib") == "usr/lib"


def test_a_root_file_system_is_one_image_as_directory_and_tarball(store: ImageStore, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin/sh").write_bytes(b"#!shell")
    (root / "bin/sh").chmod(0o4711)
    os.link(root / "bin/sh", root / "bin/dash")
    (root / "link").symlink_to("/etc/passwd")
    (root / "pipe").touch()
    (root / "pipe").unlink()
    os.mkfifo(root / "pipe")
    packed = archive(file("bin/sh", b"#!shell", mode=0o755), file("bin/dash", b"#!shell", mode=0o755))
    packed = archive(packed[: -2 * 512], symlink("link", "/etc/passwd"))
    (tmp_path / "root.tar").write_bytes(packed)
    (tmp_path / "root.tgz").write_bytes(gzip.compress(packed))
    (tmp_path / "root.txz").write_bytes(lzma.compress(packed))
    sources = [f"dir:{root}", str(root), *(str(tmp_path / f"root.{end}") for end in ("tar", "tgz", "txz"))]
    images = [store.import_image(source, f"root:{number}") for number, source in enumerate(sources)]
    assert len({image.digest for image in images}) == 1
    assert images[0].record.skipped == 1
    assert stat.S_IMODE((images[0].rootfs / "bin/sh").stat().st_mode) == 0o555
    assert (images[0].rootfs / "bin/sh").stat().st_nlink == 2
    assert os.readlink(images[0].rootfs / "link") == "/etc/passwd"


def test_an_archive_compressed_as_a_whole_is_read(store: ImageStore, tmp_path: Path) -> None:
    plain = Path(write_tar(tmp_path / "saved.tar", saved_files(Image(), ["tiny:1"])))
    (tmp_path / "saved.tar.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert store.import_image(str(tmp_path / "saved.tar.gz")).digest == Image().id


def test_an_archive_may_come_through_a_pipe(store: ImageStore, tmp_path: Path) -> None:
    data = Path(write_tar(tmp_path / "saved.tar", saved_files(Image(), ["tiny:1"]))).read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert store.import_image(str(pipe)).references == ("tiny:1",)
    writer.join()


def test_layers_of_several_gzip_members_are_read(store: ImageStore, tmp_path: Path) -> None:
    layer = archive(*tiny_rootfs())
    blob = gzip.compress(layer[:1000]) + gzip.compress(b"") + gzip.compress(layer[1000:]) + bytes(100)
    files = layout_of(Image(layer), blob)
    assert store.import_image(write_tar(tmp_path / "image.tar", files)).record.files == 3


def test_a_zstd_layer_is_read_or_the_remedy_named(store: ImageStore, tmp_path: Path) -> None:
    layer = archive(*tiny_rootfs())
    # One raw block: a zstd frame without a compressor.
    frame = b"\x28\xb5\x2f\xfd\xa0" + len(layer).to_bytes(4, "little")
    frame += ((len(layer) << 3) | 1).to_bytes(3, "little") + layer
    source = write_tar(tmp_path / "image.tar", layout_of(Image(layer), frame))
    if not any(map(_importable, ("compression.zstd", "backports.zstd"))):
        with pytest.raises(ConfigError, match=r"pip install backports\.zstd"):
            store.import_image(source)
    else:
        assert store.import_image(source).record.files == 3


def _importable(name: str) -> bool:
    from importlib import import_module

    try:
        import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def layout_of(image: Image, blob: bytes, **more: Any) -> dict[str, bytes]:
    manifest = image.manifest([blob])
    files = {blob_path(data): data for data in (manifest, image.config, blob)}
    return {"oci-layout": b"{}", "index.json": index(descriptor(manifest, MANIFEST, **more)), **files}


def multi_platform(*images: Image) -> dict[str, bytes]:
    """A layout whose index leads to an index with one manifest per platform, and an attestation."""
    files: dict[str, bytes] = {}
    manifests = []
    for image in images:
        own = oci_files(image)
        (entry,) = json.loads(own.pop("index.json"))["manifests"]
        files |= own
        manifests.append(entry)
    note = {"vnd.docker.reference.type": "attestation-manifest"}
    unknown = {"os": "unknown", "architecture": "unknown"}
    manifests.append(descriptor(b"absent", MANIFEST, platform=unknown, annotations=note))
    nested = index(*manifests)
    name = {"org.opencontainers.image.ref.name": "images.example/a/b:1"}
    return {**files, blob_path(nested): nested, "index.json": index(descriptor(nested, INDEX, annotations=name))}


def test_the_hosts_platform_is_chosen(store: ImageStore, tmp_path: Path) -> None:
    mine, other = Image(platform=AMD64), Image(platform=ARM64)
    files = multi_platform(other, mine)
    image = store.import_image(write_tar(tmp_path / "multi.tar", files))
    assert image.digest == mine.id
    assert image.references == ("images.example/a/b:1",)
    # A pinned name works with the digest of the index, of the manifest, and of the config.
    (top,) = json.loads(files["index.json"])["manifests"]
    manifest = digest(mine.manifest([gzip.compress(layer, mtime=0) for layer in mine.layers]))
    for pin in (top["digest"], manifest, mine.id):
        assert store.resolve(f"images.example/a/b@{pin}").digest == mine.id


@pytest.mark.parametrize("declared", [True, False])
def test_an_image_for_another_platform_is_refused(store: ImageStore, tmp_path: Path, declared: bool) -> None:
    image = Image(platform=ARM64)
    files = oci_files(image)
    if not declared:
        files = {**files, "index.json": files["index.json"].replace(b'"platform"', b'"other"')}
    for source in (files, saved_files(image)):
        with pytest.raises(ConfigError, match=r"linux/arm64; this host is linux/amd64"):
            store.import_image(write_tar(tmp_path / "image.tar", source))


def test_of_several_images_one_must_be_named(store: ImageStore, tmp_path: Path) -> None:
    one, two = Image(archive(file("one", b"1"))), Image(archive(file("two", b"2")))
    first, second = saved_files(one, ["a:1"]), saved_files(two, ["b:2"])
    entries = json.loads(first["manifest.json"]) + json.loads(second["manifest.json"])
    source = write_tar(tmp_path / "two.tar", {**first, **second, "manifest.json": json.dumps(entries).encode()})
    with pytest.raises(ConfigError, match=r"--name \(a:1, b:2\)"):
        store.import_image(source)
    assert store.import_image(source, "b:2").digest == two.id

    manifests = [*json.loads(oci_files(one, "a:1")["index.json"])["manifests"]]
    manifests += json.loads(oci_files(two, "b:2")["index.json"])["manifests"]
    files = {**oci_files(one), **oci_files(two), "index.json": index(*manifests)}
    with pytest.raises(ConfigError, match=r"--name \(a:1, b:2\)"):
        store.import_image(write_tar(tmp_path / "oci.tar", files))
    assert store.import_image(str(tmp_path / "oci.tar"), "docker.io/library/a:1").digest == one.id


def test_a_pinned_name_must_match_what_arrives(store: ImageStore, tmp_path: Path) -> None:
    source = write_tar(tmp_path / "image.tar", saved_files(Image()))
    with pytest.raises(IntegrityError, match="the source is not"):
        store.import_image(source, "tiny@sha256:" + "0" * 64)
    assert store.list() == []
    assert store.import_image(source, f"tiny@{Image().id}").digest == Image().id


def test_equal_layers_linked_to_each_other_are_found(store: ImageStore, tmp_path: Path) -> None:
    image = Image()
    files = saved_files(image, ["tiny:1"])
    (path,) = json.loads(files["manifest.json"])[0]["Layers"]
    manifest = files["manifest.json"].replace(path.encode(), b"b/layer.tar")
    members = [file(name, data) for name, data in {**files, "manifest.json": manifest}.items()]
    (tmp_path / "linked.tar").write_bytes(archive(*members, symlink("b/layer.tar", f"../{path}")))
    assert store.import_image(str(tmp_path / "linked.tar")).digest == image.id


def without(files: dict[str, bytes], *names: str) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name not in names}


def broken() -> dict[str, tuple[dict[str, bytes], str]]:
    image = Image()
    oci, saved = oci_files(image), saved_files(image)
    config = image.id[7:] + ".json"
    escape = json.dumps([{"Config": "../../etc/passwd", "Layers": []}]).encode()
    fewer = json.dumps([{"Config": config, "Layers": []}]).encode()
    loop = index(*[descriptor(b"{}", INDEX)] * 2000)
    return {
        "no config": (without(saved, config), "missing"),
        "no layer": (without(oci, *[name for name, data in oci.items() if data.startswith(b"\x1f\x8b")]), "missing"),
        "no images": ({"manifest.json": b"[]"}, "at least one image"),
        "not JSON": ({"manifest.json": b"["}, "not JSON"),
        "escaping config": ({"manifest.json": escape}, "missing"),
        "fewer layers": ({**saved, "manifest.json": fewer}, "the config 1"),
        "empty index": ({**oci, "index.json": index()}, "names no image"),
        "huge index": ({**oci, "index.json": loop}, "more than 1000 manifests"),
        "bad digest": ({**oci, "index.json": b'{"manifests":[{"digest":"sha256:x","size":1}]}'}, "manifests.0.digest"),
        "duplicate keys": ({**oci, "index.json": b'{"manifests":[],"manifests":[]}'}, "duplicate key"),
        "old save": ({"repositories": b"{}"}, "older than 1.10"),
        "huge document": ({"manifest.json": b" " * (9 * 2**20)}, "at most"),
    }


@pytest.mark.parametrize("name", broken())
def test_a_broken_archive_says_what_is_wrong(store: ImageStore, tmp_path: Path, name: str) -> None:
    files, rule = broken()[name]
    source = write_tar(tmp_path / "broken.tar", files)
    with pytest.raises((ConfigError, IntegrityError), match=rule) as caught:
        store.import_image(source)
    assert "broken.tar" in str(caught.value)


def test_a_name_that_occurs_twice_in_an_archive_is_refused(store: ImageStore, tmp_path: Path) -> None:
    files = saved_files(Image())
    members = [file(name, data) for name, data in files.items()]
    (tmp_path / "twice.tar").write_bytes(archive(*members, file("manifest.json", files["manifest.json"])))
    with pytest.raises(ConfigError, match="twice"):
        store.import_image(str(tmp_path / "twice.tar"))


def test_a_layout_with_a_link_out_of_it_is_refused(store: ImageStore, tmp_path: Path) -> None:
    layout = Path(write_layout(tmp_path / "layout", oci_files(Image())))
    blob = layout / blob_path(Image().config)
    blob.rename(tmp_path / "elsewhere")
    blob.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="symbolic link"):
        store.import_image(str(layout))


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda path: "python:3.11", "say docker-daemon:python:3.11"),
        (lambda path: str(path / "nothing"), "does not exist"),
        (lambda path: "", "does not exist"),
        (lambda path: "docker-daemon:--help", "is not"),
        (lambda path: _written(path / "empty", b""), "is empty"),
        (lambda path: _written(path / "text", b"hello" * 500), "not a number"),
        (lambda path: _written(path / "void.tar", archive()), "no file"),
        (lambda path: f"dir:{path}", "no file"),
    ],
)
def test_a_source_that_cannot_be_used_says_why(store: ImageStore, tmp_path: Path, make: Any, rule: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ConfigError, match=rule):
        store.import_image(make(tmp_path / "in"))


def _written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)
