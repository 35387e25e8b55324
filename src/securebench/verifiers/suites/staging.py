"""What a suite really runs: the expected tests, their twins, and canaries. Where the truth lies stays out here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from securebench.verifiers.suites.canary import canaries
from securebench.verifiers.suites.ids import TestId
from securebench.verifiers.suites.twins import twin_module


@dataclass(frozen=True, slots=True)
class Staged:
    """Files to write over the tree last, and what the names in them mean."""

    kind: str
    files: Mapping[str, bytes]
    truths: Mapping[TestId, TestId]  # every expected test → the test that stands for it
    decoys: Mapping[TestId, tuple[TestId, ...]]  # the same, where it has twins
    canaries: tuple[TestId, ...]  # that must fail; at least one
    assertions: int
    twinned: int

    @property
    def chosen(self) -> tuple[TestId, ...]:
        """Every test that shall run, one entry for all parameters of a function."""
        decoys = (decoy for some in self.decoys.values() for decoy in some)
        listed = [*self.truths.values(), *decoys, *self.canaries]
        return tuple(sorted({TestId(test.file, test.name) for test in listed}))


def stage_suite(
    kind: str, expected: Iterable[TestId], source_of: Callable[[str], str | None], random: Random
) -> Staged:
    """Twin every expected test that can have twins. `source_of` gives a test file's text, or None where it has none."""
    expected = sorted(set(expected))
    files: dict[str, bytes] = {}
    truths: dict[TestId, TestId] = {}
    decoys: dict[TestId, tuple[TestId, ...]] = {}
    assertions = twinned = 0
    for file in sorted({test.file for test in expected}):
        here = [test for test in expected if test.file == file]
        source = source_of(file)
        twins = {}
        if source is not None:
            module = twin_module(source, frozenset(test.name for test in here), random)
            assertions, twinned = assertions + module.assertions, twinned + module.twinned
            twins = {entry.test: entry for entry in module.twins}
            if twins:
                files[file] = module.source.encode()
        for test in here:
            entry = twins.get(test.name)
            truths[test] = test.renamed(entry.truth) if entry else test
            if entry:
                decoys[test] = tuple(TestId(file, name) for name in entry.decoys)
    sources = [source for file in {test.file for test in expected} if (source := source_of(file)) is not None]
    found, text = canaries(kind, expected[0].file, sources, random)
    files[found[0].file] = text.encode()
    return Staged(kind, MappingProxyType(files), truths, decoys, found, assertions, twinned)
