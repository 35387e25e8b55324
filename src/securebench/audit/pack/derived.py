"""A05: files that tools made, perhaps from hidden tests: caches, compiled modules, coverage, snapshots. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

FOLDERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox"}) | {
    "htmlcov",
    ".nyc_output",
    "__snapshots__",
}
_FILES = re.compile(
    r".*\.py[co]|\.coverage(?:\..+)?|coverage\.(?:xml|json|lcov)|lcov\.info|\.testmondata.*|junit.*\.xml"
)
LOOKED_AT = 2**21


@dataclass(frozen=True, slots=True)
class HiddenTests:
    """What is known of hidden tests: the files they are in, and the names in their ids."""

    stems: frozenset[str] = field(default_factory=frozenset)
    names: frozenset[bytes] = field(default_factory=frozenset)

    @classmethod
    def of(cls, files: Iterable[str], ids: Iterable[str] = ()) -> HiddenTests:
        """From paths of test files and ids such as `tests/test_a.py::TestX::test_y[1]` or `pkg.mod.test_y`."""
        stems = {PurePosixPath(path).stem for path in files}
        names = set()
        for identity in ids:
            path, _, rest = identity.partition("::")
            if rest:
                stems.add(PurePosixPath(path).stem)
            last = re.split(r"::|\.", rest or path)[-1].partition("[")[0]
            names |= {last.encode()} if len(last) >= 8 else set()
        return cls(frozenset(stem for stem in stems if stem not in {"", "__init__", "conftest"}), frozenset(names))


@dataclass(frozen=True, slots=True)
class Stale:
    """A derived file. `of_hidden`: it was made from hidden tests, by its name or by what stands in it."""

    path: str
    of_hidden: bool


def is_derived(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return any(part in FOLDERS for part in parts[:-1]) or _FILES.fullmatch(parts[-1]) is not None


def stale_files(files: Iterable[tuple[str, bytes]], hidden: HiddenTests) -> Iterator[Stale]:
    """The derived ones among files, given with their paths."""
    for path, data in files:
        if is_derived(path):
            stem = PurePosixPath(path).name.partition(".")[0]
            yield Stale(path, stem in hidden.stems or any(name in data[:LOOKED_AT] for name in hidden.names))
