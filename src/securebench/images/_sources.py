"""Turns the SOURCE of an import into a plan: what is it, and where do its bytes lie?"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from securebench._fs import CHUNK, UnsafeEntry
from securebench.errors import ConfigError, StoreError, os_reason
from securebench.images._archive import Wanted, plan_oci, plan_saved
from securebench.images._bundle import Bundle, DirectoryBundle, TarBundle
from securebench.images._daemon import save_from_daemon
from securebench.images._layers import Layer
from securebench.images._streams import Blob, LayerStream, compression_of
from securebench.images.budget import Budget
from securebench.images.plan import Directory, ImportProgress, OnProgress, Plan, Tarball

DAEMON = "docker-daemon:"
DIRECTORY = "dir:"


@contextmanager
def open_source(source: str, work: Path, wanted: Wanted, progress: OnProgress) -> Iterator[Plan]:
    """The plan for `source`, valid inside the `with`. `work` is an empty directory for what must be stored meanwhile.

    `docker-daemon:NAME`, `dir:PATH`, `-` for standard input, or the path of an OCI layout directory, a root file
    system directory, an OCI archive, a `docker save` archive or a tarball of a root file system; archives may be
    compressed as a whole. Raises ConfigError for anything else."""
    with ExitStack() as cleanup:
        if source.startswith(DAEMON):
            yield _from_daemon(source.removeprefix(DAEMON), work, wanted, progress, cleanup)
        elif source.startswith(DIRECTORY):
            yield Plan(Directory(_existing(source.removeprefix(DIRECTORY))))
        elif source == "-":
            yield _from_file(0, "standard input", work, wanted, progress, cleanup)
        elif (path := _existing(source)).is_dir():
            yield _from_directory(path, wanted, cleanup)
        else:
            yield _from_file(_open(path, cleanup), str(path), work, wanted, progress, cleanup)


def _existing(text: str) -> Path:
    path = Path(text)
    if text and path.exists():
        return path
    hint = "" if text.startswith(("/", ".")) else f"; for an image of a running Docker, say {DAEMON}{text}"
    raise ConfigError(f"{text!r} does not exist{hint}")


def _from_directory(path: Path, wanted: Wanted, cleanup: ExitStack) -> Plan:
    if (path / "oci-layout").is_file():
        return plan_oci(DirectoryBundle(path, cleanup), wanted)
    return Plan(Directory(path))


def _from_daemon(name: str, work: Path, wanted: Wanted, progress: OnProgress, cleanup: ExitStack) -> Plan:
    spool = _spool(work / "saved.tar", cleanup)
    claims = save_from_daemon(name, spool, wanted.limits.total_bytes, progress)
    plan = _from_archive(Blob(spool, 0, os.fstat(spool).st_size), f"docker save {name}", wanted)
    return replace(plan, claims=claims)


def _from_file(
    descriptor: int, shown: str, work: Path, wanted: Wanted, progress: OnProgress, cleanup: ExitStack
) -> Plan:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        spool = _spool(work / "read.tar", cleanup)
        status = _copy(descriptor, spool, shown, wanted.limits.total_bytes, progress)
        descriptor = spool
    blob = Blob(descriptor, 0, status.st_size)
    try:
        if compression_of(blob.read_at(0, 8)):
            blob = _decompressed(blob, _spool(work / "plain.tar", cleanup), wanted, progress)
    except (ConfigError, UnsafeEntry) as error:
        raise ConfigError(f"{shown}: {error}") from error
    return _from_archive(blob, shown, wanted)


def _from_archive(blob: Blob, shown: str, wanted: Wanted) -> Plan:
    if not blob.size:
        raise ConfigError(f"{shown}: is empty")
    bundle: Bundle = TarBundle(blob, shown, wanted.limits)
    if bundle.has("oci-layout") and bundle.has("index.json"):
        return plan_oci(bundle, wanted)
    if bundle.has("manifest.json"):
        return plan_saved(bundle, wanted)
    if bundle.has("repositories"):
        raise ConfigError(f"{shown}: was saved by a Docker older than 1.10; save it again with a newer one")
    return Plan(Tarball(Layer(blob, shown)))


def _open(path: Path, cleanup: ExitStack) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{path} {os_reason(error)}") from error
    cleanup.callback(os.close, descriptor)
    return descriptor


def _spool(path: Path, cleanup: ExitStack) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    cleanup.callback(os.close, descriptor)
    path.unlink()  # it lives as long as its descriptor, also when we are killed
    return descriptor


def _copy(source: int, target: int, shown: str, limit: int, progress: OnProgress) -> os.stat_result:
    total = 0
    while chunk := os.read(source, CHUNK):
        total += len(chunk)
        if total > limit:
            raise ConfigError(f"{shown}: holds more than {limit} bytes")
        _write(target, chunk)
        progress(ImportProgress("reading", total, None))
    return os.fstat(target)


def _decompressed(blob: Blob, target: int, wanted: Wanted, progress: OnProgress) -> Blob:
    stream = LayerStream(
        blob,
        Budget(wanted.limits),
        on_bytes=lambda done: progress(ImportProgress("decompressing", done, blob.size)),
    )
    while chunk := stream.some(CHUNK):
        _write(target, chunk)
    return Blob(target, 0, os.fstat(target).st_size)


def _write(target: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError as error:
        raise StoreError(f"the image store cannot be written: {os.strerror(error.errno or 0).lower()}") from error
