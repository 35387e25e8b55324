"""Images made by hand: tar archives with any bytes in their headers, OCI layouts, `docker save` archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from securebench.images._documents import Platform
from securebench.images.budget import ImportLimits
from securebench.images.store import ImageStore

BLOCK = 512
AMD64 = {"os": "linux", "architecture": "amd64"}


def make_store(root: Path, limits: ImportLimits | None = None) -> ImageStore:
    """A store for a fixed platform that does not wait for the disk."""
    return ImageStore(root, limits=limits, platform=Platform(os="linux", architecture="amd64"), sync=lambda: None)


def store_is_clean(store: ImageStore) -> bool:
    """Nothing but whole images, and nothing left over."""
    allowed = {".lock", "names.json", "sha256", "tmp"}
    images = list((store.root / "sha256").iterdir())
    whole = all({path.name for path in image.iterdir()} == {"rootfs", "config.json", "record.json"} for image in images)
    return whole and {path.name for path in store.root.iterdir()} <= allowed and not any((store.root / "tmp").iterdir())


def pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def header(
    name: bytes,
    kind: bytes = b"0",
    *,
    size: int = 0,
    mode: int = 0o644,
    link: bytes = b"",
    mtime: int = 1_600_000_000,
    magic: bytes = b"ustar\x0000",
    prefix: bytes = b"",
    checksum: int | None = None,
) -> bytes:
    """One header block, exactly as asked for."""
    number = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    block = bytearray(BLOCK)
    fields = [
        (0, name[:100]),
        (100, b"%07o\0" % mode),
        (108, b"%07o\0" % 1234),
        (116, b"%07o\0" % 1234),
        (124, number),
        (136, b"%011o\0" % mtime),
        (148, b" " * 8),
        (156, kind),
        (157, link[:100]),
        (257, magic),
        (345, prefix[:155]),
    ]
    for offset, value in fields:
        block[offset : offset + len(value)] = value
    total = sum(block) if checksum is None else checksum
    block[148:156] = b"%06o\0 " % total
    return bytes(block)


def file(name: bytes | str, data: bytes = b"", *, mode: int = 0o644, mtime: int = 1_600_000_000) -> bytes:
    name = _bytes(name)
    return long_name(name) + header(name, size=len(data), mode=mode, mtime=mtime) + pad(data)


def directory(name: bytes | str, mode: int = 0o755) -> bytes:
    name = _bytes(name)
    return long_name(name) + header(name, b"5", mode=mode)


def symlink(name: bytes | str, target: bytes | str) -> bytes:
    name, target = _bytes(name), _bytes(target)
    return long_name(name) + long_name(target, b"K") + header(name, b"2", link=target)


def hardlink(name: bytes | str, target: bytes | str) -> bytes:
    name, target = _bytes(name), _bytes(target)
    return long_name(name) + long_name(target, b"K") + header(name, b"1", link=target)


def special(name: bytes | str, kind: bytes = b"3") -> bytes:
    return header(_bytes(name), kind)


def long_name(name: bytes, kind: bytes = b"L") -> bytes:
    if len(name) <= 100:
        return b""
    return header(b"././@LongLink", kind, size=len(name) + 1) + pad(name + b"\0")


def pax(records: dict[str, bytes], kind: bytes = b"x") -> bytes:
    data = b"".join(_pax_record(key.encode(), value) for key, value in records.items())
    return header(b"PaxHeaders/x", kind, size=len(data)) + pad(data)


def _pax_record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while length != (new := len(key) + len(value) + 3 + len(str(length))):
        length = new
    return b"%d %s=%s\n" % (length, key, value)


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text


def archive(*members: bytes) -> bytes:
    return b"".join(members) + bytes(2 * BLOCK)


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tiny_rootfs() -> list[bytes]:
    """A layer's members: what a small image has in it."""
    return [
        directory("./"),
        directory("bin"),
        file("bin/sh", b"#!shell", mode=0o755),
        directory("etc"),
        file("etc/passwd", b"root:x:0:0::/:/bin/sh\n"),
        symlink("lib", "usr/lib"),
        directory("usr/lib"),
        file("usr/lib/libc.so", b"\x7fELF", mode=0o755),
    ]


class Image:
    """An image of uncompressed layers, to be packed in any of the formats."""

    def __init__(
        self, *layers: bytes, config: dict[str, Any] | None = None, platform: dict[str, str] | None = None
    ) -> None:
        self.layers = layers or (archive(*tiny_rootfs()),)
        document = {
            **(AMD64 if platform is None else platform),
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in self.layers]},
        }
        self.config = json.dumps(document).encode()
        self.platform = platform

    @property
    def id(self) -> str:
        return digest(self.config)

    def manifest(self, blobs: Sequence[bytes]) -> bytes:
        kind = "application/vnd.oci.image.layer.v1.tar"
        return json.dumps(
            {
                "schemaVersion": 2,
                "config": descriptor(self.config, "application/vnd.oci.image.config.v1+json"),
                "layers": [descriptor(blob, kind) for blob in blobs],
            }
        ).encode()


def descriptor(data: bytes, media_type: str, **more: Any) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}


MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def blob_path(data: bytes) -> str:
    return "blobs/sha256/" + hashlib.sha256(data).hexdigest()


def oci_files(image: Image, name: str | None = None, *, compress: bool = True) -> dict[str, bytes]:
    """The files of an OCI layout."""
    blobs = [gzip.compress(layer, mtime=0) if compress else layer for layer in image.layers]
    manifest = image.manifest(blobs)
    more = {"annotations": {"org.opencontainers.image.ref.name": name}} if name else {}
    if image.platform:
        more["platform"] = image.platform
    return {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": index(descriptor(manifest, MANIFEST, **more)),
        **{blob_path(data): data for data in [manifest, image.config, *blobs]},
    }


def index(*descriptors: dict[str, Any]) -> bytes:
    return json.dumps({"schemaVersion": 2, "manifests": list(descriptors)}).encode()


def saved_files(image: Image, tags: list[str] | None = None) -> dict[str, bytes]:
    """The files of a `docker save` archive, as Docker wrote them before version 25."""
    config = f"{image.id.removeprefix('sha256:')}.json"
    layers = {f"{digest(layer)[7:]}/layer.tar": layer for layer in image.layers}
    entry = {"Config": config, "RepoTags": tags, "Layers": list(layers)}
    return {**layers, config: image.config, "manifest.json": json.dumps([entry]).encode()}


def combined_files(image: Image, tag: str) -> dict[str, bytes]:
    """The files of a `docker save` archive since version 25: an OCI layout with a `manifest.json` beside it."""
    files = oci_files(image, compress=False)
    manifest = image.manifest(image.layers)
    names = {"io.containerd.image.name": f"docker.io/library/{tag}", "org.opencontainers.image.ref.name": "latest"}
    entry = {
        "Config": blob_path(image.config),
        "RepoTags": [tag],
        "Layers": [blob_path(layer) for layer in image.layers],
    }
    return {
        **files,
        "index.json": index(descriptor(manifest, MANIFEST, annotations=names)),
        "manifest.json": json.dumps([entry]).encode(),
    }


def write_tar(path: Path, files: dict[str, bytes]) -> str:
    path.write_bytes(archive(*(file(name, data) for name, data in files.items())))
    return str(path)


def write_layout(path: Path, files: dict[str, bytes]) -> str:
    for name, data in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return str(path)


def naive_extract(data: bytes, target: Path) -> None:
    """What people write: the positive control of every hostile archive."""
    target.mkdir()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        # The argument is missing in the first releases of Python 3.11, which behave as if it was given.
        trusting = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
        tar.extractall(target, **trusting)  # type: ignore[arg-type]
