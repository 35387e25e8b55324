"""`names.json`: which name and which manifest digest leads to which image. Replaced as a whole, never edited."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from securebench import _json
from securebench.errors import IntegrityError
from securebench.images._documents import Digest
from securebench.images.reference import Reference, is_digest


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: int = Field(ge=1, le=1)
    names: dict[str, Digest]
    manifests: dict[Digest, Digest]


@dataclass(slots=True)
class Names:
    """Names and manifest digests, each leading to an image's digest."""

    names: dict[str, str] = field(default_factory=dict)
    manifests: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Names:
        """What the file says; nothing when there is none. Raises IntegrityError when it is damaged."""
        try:
            stored = _Stored.model_validate(_json.loads(path.read_bytes()))
        except FileNotFoundError:
            return cls()
        except (_json.JsonError, ValidationError) as error:
            raise IntegrityError(f"{path}: damaged; remove it and import the images again by name") from error
        return cls(dict(stored.names), dict(stored.manifests))

    def save(self, path: Path) -> None:
        """Replace the file. The caller holds the store's lock."""
        value = {"format": 1, "names": _sorted(self.names), "manifests": _sorted(self.manifests)}
        write_durably(path, (_json.dumps(value) + "\n").encode())

    def find(self, text: str) -> str | None:
        """The digest of the image that `text` names: a digest, a pinned name or a tag. Raises ConfigError."""
        if is_digest(text):
            return self.manifests.get(text, text)
        reference = Reference.parse(text)
        found = self.names.get(reference.key)
        if found is None and reference.digest:
            return self.manifests.get(reference.digest, reference.digest)
        return found

    def of(self, digest: str) -> tuple[str, ...]:
        return tuple(sorted(name for name, target in self.names.items() if target == digest))

    def add(self, digest: str, names: Iterable[str], manifests: Iterable[str]) -> None:
        self.names.update(dict.fromkeys(names, digest))
        self.manifests.update(dict.fromkeys(manifests, digest))

    def forget(self, digest: str) -> None:
        self.names = {name: target for name, target in self.names.items() if target != digest}
        self.manifests = {manifest: target for manifest, target in self.manifests.items() if target != digest}


def _sorted(mapping: dict[str, str]) -> dict[str, str]:
    return dict(sorted(mapping.items()))


def write_durably(path: Path, data: bytes) -> None:
    """Put `data` at `path`, all or nothing, on disk when this returns."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
