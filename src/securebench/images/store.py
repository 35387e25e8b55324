"""The image store: root file systems by content, names that point at them.

```
ROOT/
  .lock                     held while names change and while an image appears or goes
  names.json                name → image, manifest digest → image
  sha256/<config digest>/   rootfs/, config.json (its digest is the directory's name), record.json
  tmp/                      imports under way, each locked by its process; what is not locked is left over and goes
```

An image is built beneath `tmp` and renamed into place when it is complete, checked, read-only and on disk: a crash
leaves all of it or nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from securebench import _json
from securebench._canonical import digest_bytes
from securebench._fs import open_directory
from securebench.errors import ConfigError, IntegrityError, SandboxUnavailable
from securebench.images._archive import Wanted
from securebench.images._documents import Digest, ImageConfig, Platform, parse_config
from securebench.images._layers import Layer
from securebench.images._names import Names, sync_directory, write_durably
from securebench.images._shelf import Shelf
from securebench.images._sources import open_source
from securebench.images._streams import Blob
from securebench.images._tar_stream import tar_stream
from securebench.images._tree import TreeSummary, seal_tree, summarize_tree
from securebench.images._writer import RootfsWriter
from securebench.images.budget import Budget, ImportLimits
from securebench.images.plan import ImportProgress, OnProgress, Plan, Tarball, host_platform, quiet
from securebench.images.reference import Reference


class ImageRecord(BaseModel):
    """What an import found, in `record.json`. `tree` is the digest `verify` computes again."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: int = Field(default=1, ge=1, le=1)
    tree: Digest
    files: int
    directories: int
    links: int
    bytes: int
    layers: int
    skipped: int  # devices and FIFOs, which were not made


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image in the store. `rootfs` is read-only and must stay so."""

    digest: str
    rootfs: Path
    config: ImageConfig
    references: tuple[str, ...]
    record: ImageRecord


@dataclass(frozen=True, slots=True)
class SentImage:
    """An image on its way from one store to another."""

    reference: str
    digest: str
    tree: str
    config: bytes


@dataclass(frozen=True, slots=True)
class Removed:
    """What `remove` did: names that are gone, and the image if none was left."""

    references: tuple[str, ...]
    digest: str | None


class ImageStore:
    """Imports, finds and removes images. Any number of processes may use the same store."""

    def __init__(
        self,
        root: Path,
        *,
        limits: ImportLimits | None = None,
        platform: Platform | None = None,
        sync: Callable[[], None] = os.sync,
    ) -> None:
        self._shelf = Shelf(root)
        self._limits = limits or ImportLimits()
        self._platform = platform or host_platform()
        self._sync = sync

    @property
    def root(self) -> Path:
        return self._shelf.root

    def import_image(self, source: str, reference: str | None = None, progress: OnProgress = quiet) -> StoredImage:
        """Bring in the image at `source` (see `_sources.open_source`) under `reference`, or else its own names.

        Must not be called from within an event loop. Raises ConfigError for a source that cannot be used, naming the
        member at fault, IntegrityError for bytes that are not those promised, StoreError when the host cannot write."""
        name = Reference.parse(reference) if reference else None
        wanted = Wanted(name, self._platform, self._limits)
        with self._shelf.workspace() as work, open_source(source, work, wanted, progress) as plan:
            config = plan.contents.config
            if config is None or not self._has(digest_bytes(config)):
                config = self._build(plan, work / "image", progress)
            return self._publish(plan, name, digest_bytes(config), work / "image")

    def resolve(self, reference: str) -> StoredImage:
        """The image of that name or digest. Raises SandboxUnavailable with the remedy when it was not imported."""
        names = Names.load(self._shelf.names)
        digest = names.find(reference)
        if digest is None or not self._has(digest):
            raise SandboxUnavailable(
                f"image {reference!r} is not in the image store {self.root}",
                f"Import it: securebench image import docker-daemon:{reference}\n"
                f"or, without Docker: securebench image import ARCHIVE --name {reference}",
            )
        return self._load(digest, names)

    def send(self, image: StoredImage) -> Iterator[bytes]:
        """The root file system of an image as a tar stream, for another store to `receive`."""
        return tar_stream(image.rootfs)

    def receive(self, archive: int, image: SentImage) -> StoredImage:
        """Take an image over from another store; `archive` is an open file with its tar stream. It is there already,
        or is exactly that image. Raises IntegrityError when it is another one, StoreError when it cannot be written."""
        if digest_bytes(image.config) != image.digest:
            raise IntegrityError(f"the config of {image.reference} arrived with another digest")
        name = Reference.parse(image.reference)
        contents = Tarball(Layer(Blob(archive, 0, os.fstat(archive).st_size), image.reference), image.config)
        plan = Plan(contents, claims=(name.key,))
        with self._shelf.workspace() as work:
            if not self._has(image.digest):
                self._build(plan, work / "image", quiet)
                tree = self._summarize(work / "image" / "rootfs", quiet).digest
                if tree != image.tree:
                    raise IntegrityError(f"{image.reference} arrived as another tree: {tree}, expected {image.tree}")
            return self._publish(plan, name, image.digest, work / "image")

    def sent(self, reference: str) -> SentImage:
        """What another store has to know before it receives an image. Raises SandboxUnavailable."""
        image = self.resolve(reference)
        config = (image.rootfs.parent / "config.json").read_bytes()
        return SentImage(reference, image.digest, image.record.tree, config)

    def list(self) -> list[StoredImage]:
        """Every image, by digest. Raises IntegrityError for a damaged one."""
        names = Names.load(self._shelf.names)
        return [self._load(digest, names) for digest in self._shelf.digests()]

    def remove(self, reference: str) -> Removed:
        """Remove a name, and the image with it when no other tag names it; or, by digest, the image and all its names.

        A digest may be shortened to `sha256:` and twelve digits. Raises ConfigError when there is no such image."""
        with self._shelf.locked():
            names = Names.load(self._shelf.names)
            digest = self._abbreviated(reference) or names.find(reference)
            if digest is None or not self._has(digest):
                raise ConfigError(f"image {reference!r} is not in the image store; see: securebench image list")
            removed = Removed(names.of(digest), digest)
            if "sha256:" not in reference and _tags(names, digest) != [Reference.parse(reference).key]:
                removed = Removed((Reference.parse(reference).key,), None)
                del names.names[removed.references[0]]
            else:
                names.forget(digest)
            names.save(self._shelf.names)
            if removed.digest:
                self._shelf.take_away(digest)
            self._shelf.sweep()
            return removed

    def verify(self, digest: str, progress: OnProgress = quiet) -> None:
        """Compare a stored image with what was recorded at its import. Raises IntegrityError when it differs."""
        if not self._has(digest):
            raise ConfigError(f"image {digest} is not in the image store")
        image = self._load(digest, Names())
        found = self._summarize(image.rootfs, progress).digest
        if found != image.record.tree:
            raise IntegrityError(
                f"{image.rootfs} was changed after its import (tree {found}, recorded {image.record.tree}); "
                f"remove it with `securebench image rm {digest}` and import it again"
            )

    def _build(self, plan: Plan, image: Path, progress: OnProgress) -> bytes:
        """Make the complete directory of an image; returns its config."""
        rootfs = image / "rootfs"
        rootfs.mkdir(parents=True)
        budget = Budget(self._limits)
        with open_directory(rootfs) as root, RootfsWriter(root, budget) as writer:
            plan.contents.write(writer, budget, progress)
            seal_tree(root)
            skipped = writer.skipped
        summary = self._summarize(rootfs, progress)
        if not summary.files:
            raise ConfigError("the image holds no file; is this the right source?")
        config = plan.contents.config or self._synthesized(summary.digest)
        record = ImageRecord(
            tree=summary.digest,
            files=summary.files,
            directories=summary.directories,
            links=summary.links,
            bytes=summary.bytes,
            layers=plan.contents.layer_count,
            skipped=skipped,
        )
        write_durably(image / "config.json", config)
        write_durably(image / "record.json", record.model_dump_json().encode())
        image.chmod(0o755)
        progress(ImportProgress("writing to disk", 0, None))
        self._sync()
        return config

    def _synthesized(self, tree: str) -> bytes:
        """A config for a root file system that came without one; its digest depends on the tree alone."""
        platform = {"architecture": self._platform.architecture, "os": self._platform.os}
        return _json.dumps({**platform, "rootfs": {"type": "tree", "diff_ids": [tree]}}).encode()

    def _summarize(self, rootfs: Path, progress: OnProgress) -> TreeSummary:
        with open_directory(rootfs) as root:
            return summarize_tree(root, lambda done: progress(ImportProgress("checking", done, None)))

    def _publish(self, plan: Plan, name: Reference | None, digest: str, built: Path) -> StoredImage:
        """Let the image appear under its names."""
        known = {digest, *plan.manifests}
        if name and name.digest and name.digest not in known and name.key not in plan.claims:
            raise IntegrityError(
                f"the source is not {name.key}: its digests are {', '.join(sorted(known))}. "
                "`docker save` does not keep a registry's digest; import from docker-daemon: or an OCI archive"
            )
        with self._shelf.locked():
            names = Names.load(self._shelf.names)
            if not self._has(digest):
                built.rename(self._shelf.image(digest))
                sync_directory(self._shelf.images)
            names.add(digest, [*([name.key] if name else plan.names), *plan.claims], plan.manifests)
            names.save(self._shelf.names)
            return self._load(digest, names)

    def _has(self, digest: str) -> bool:
        return self._shelf.image(digest).is_dir()

    def _abbreviated(self, text: str) -> str | None:
        if not re.fullmatch(r"sha256:[0-9a-f]{12,63}", text):
            return None
        found = [digest for digest in self._shelf.digests() if digest.startswith(text)]
        if len(found) > 1:
            raise ConfigError(f"{text} is the beginning of {len(found)} images; give more digits")
        if not found:
            raise ConfigError(f"no image begins with {text}; see: securebench image list")
        return found[0]

    def _load(self, digest: str, names: Names) -> StoredImage:
        """Read what is stored beside a root file system. Raises IntegrityError when it is not what was written."""
        directory = self._shelf.image(digest)
        remedy = f"remove it with `securebench image rm {digest}` and import it again"
        try:
            config = (directory / "config.json").read_bytes()
            record = ImageRecord.model_validate(_json.loads((directory / "record.json").read_bytes()))
        except (OSError, _json.JsonError, ValidationError) as error:
            raise IntegrityError(f"{directory}: damaged; {remedy}") from error
        if digest_bytes(config) != digest:
            raise IntegrityError(f"{directory}/config.json was changed after its import; {remedy}")
        settings = parse_config(config, f"{directory}/config.json").settings
        return StoredImage(digest, directory / "rootfs", settings, names.of(digest), record)


def _tags(names: Names, digest: str) -> list[str]:
    """The names that keep an image; a pinned name does not, it is only another way to say the digest."""
    return [name for name in names.of(digest) if "@" not in name]
