"""Images that the head has imported, for nodes that have not: sent once to each, and checked like an import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from tempfile import TemporaryFile

from securebench.errors import IntegrityError, SandboxUnavailable
from securebench.images import default_store
from securebench.images.store import ImageStore, SentImage


class Images:
    """The images of one side, by digest; on a node also those that the head offers."""

    def __init__(self, offered: Iterable[SentImage], store: ImageStore | None = None) -> None:
        self._store = store or default_store()
        self.offered: Mapping[str, SentImage] = {image.digest: image for image in offered}

    @classmethod
    def here(cls, references: Iterable[str | None]) -> Images:
        """Those of these names that are imported on this machine."""
        store, found = default_store(), []
        for reference in references:
            if reference is not None:
                try:
                    found.append(store.sent(reference))
                except SandboxUnavailable:
                    continue  # nodes may have it all the same
        return cls(found, store)

    def has(self, digest: str) -> bool:
        """Whether it is here under the name that the head has for it, or another image is."""
        try:
            self._store.resolve(self._known(digest).reference)
        except SandboxUnavailable:
            return False
        return True

    def pieces(self, digest: str) -> Iterator[bytes]:
        return self._store.send(self._store.resolve(self._known(digest).reference))

    def take(self, digest: str, pieces: Iterator[bytes]) -> None:
        """Raises IntegrityError unless it is the image that was offered."""
        with TemporaryFile(dir=self._store.root) as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            self._store.receive(file.fileno(), self._known(digest))

    def _known(self, digest: str) -> SentImage:
        if digest not in self.offered:
            raise IntegrityError(f"image {digest} is not one of this run")
        return self.offered[digest]
