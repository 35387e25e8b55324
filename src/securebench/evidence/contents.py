"""Whether what a record names by digest is there and has that digest: candidates, trees, kept evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from securebench._canonical import digest_bytes
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree, delta_between
from securebench.errors import IntegrityError, StoreError
from securebench.records.shape import RecordShape


class ContentsCheck:
    """Checks every content once, however many records name it."""

    def __init__(self, store: CandidateStore) -> None:
        self._store = store
        self._sizes: dict[str, int | str] = {}  # bytes of what is sound, the problem of what is not
        self._trees: dict[str, Tree | str] = {}

    def problems(self, record: RecordShape) -> Iterator[str]:
        """What is wrong with what this record names."""
        yield from self._candidate(record)
        for name, kept in record.evidence.items():
            yield from self._content(f"evidence {name!r}", kept.digest, kept.size)

    def _candidate(self, record: RecordShape) -> Iterator[str]:
        parts = [record.candidate_text, record.candidate_patch, record.candidate_workspace]
        filled = [part for part in parts if part is not None]
        stated = record.digests.candidate
        if not filled and stated is None:
            return
        if len(filled) != 1 or stated is None:
            yield "names a candidate and does not hold exactly one"
        elif record.candidate_workspace is not None:
            if stated != record.candidate_workspace:
                yield f"the candidate is {record.candidate_workspace}, but digests.candidate says {stated}"
            yield from self._tree("the candidate", stated)
        elif (capture := patch_capture(record)) is not None and record.candidate_patch is not None:
            yield from self._patch(capture, stated)
        elif (seen := digest_bytes(filled[0].encode("utf-8", "surrogatepass"))) != stated:
            yield f"the candidate has the digest {seen}, but digests.candidate says {stated}"

    def _patch(self, capture: dict[str, Any], stated: str) -> Iterator[str]:
        """A patch taken from a repository is judged as the difference of two stored trees."""
        pristine, captured = capture.get("pristine"), capture.get("tree")
        if not isinstance(pristine, str) or not isinstance(captured, str):
            yield "does not name the trees its patch is the difference of"
            return
        problems = [*self._tree("the repository", pristine), *self._tree("the candidate", captured)]
        yield from problems
        before, after = self._trees.get(pristine), self._trees.get(captured)
        if isinstance(before, Tree) and isinstance(after, Tree):
            seen = delta_between(before, after).digest
            if seen != stated:
                yield f"the stored trees differ by {seen}, but digests.candidate says {stated}"

    def _tree(self, what: str, digest: str) -> Iterator[str]:
        if digest not in self._trees:
            if len(self._trees) >= 64:  # trees can be large, and neighbours share them
                self._trees.clear()
            self._trees[digest] = self._loaded(digest)
        tree = self._trees[digest]
        if isinstance(tree, str):
            yield f"{what}: {tree}"
            return
        for entry in tree.files:
            yield from self._content(f"{what}, file {entry.path!r}", entry.digest, entry.size)

    def _loaded(self, digest: str) -> Tree | str:
        try:
            return self._store.load(digest)
        except (IntegrityError, StoreError) as error:
            return str(error)

    def _content(self, what: str, digest: str, size: int) -> Iterator[str]:
        if digest not in self._sizes:
            try:
                self._sizes[digest] = sum(map(len, self._store.chunks(digest)))
            except (IntegrityError, StoreError) as error:
                self._sizes[digest] = str(error)
        seen = self._sizes[digest]
        if isinstance(seen, str):
            yield f"{what}: {seen}"
        elif seen != size:
            yield f"{what}: has {seen} bytes, but the record says {size}"


def patch_capture(record: RecordShape) -> dict[str, Any] | None:
    """How a patch was taken from a repository; None for a patch that arrived as text, and for what is no patch."""
    candidate = record.producer_metadata.get("candidate")
    capture = candidate.get("capture") if isinstance(candidate, dict) else None
    return capture if isinstance(capture, dict) and "delta" in capture else None
