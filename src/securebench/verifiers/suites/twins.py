"""Decoy twins: a hidden test rewritten into variants of which one holds the right value, under names that tell nothing.

A process that forges results has to know which variant is true; that is what solving the task means. The list of
names stays outside. The variants of a test replace it where it stood, in random order."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from random import Random

from securebench.verifiers.suites.assertions import Function, count_assertions, literals

MAX_DECOYS = 12


@dataclass(frozen=True, slots=True)
class Twins:
    """One test and its variants, by qualified name in its module: `test_a` or `TestB.test_c`."""

    test: str
    truth: str
    decoys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TwinnedModule:
    """The rewritten source, what became of which test, and how many assertions of the tests have twins."""

    source: str
    twins: tuple[Twins, ...]
    assertions: int
    twinned: int


def twin_module(source: str, wanted: frozenset[str], random: Random) -> TwinnedModule:
    """Rewrite the tests named in `wanted`. A module that does not parse, or has nothing to twin, stays as it is."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return TwinnedModule(source, (), 0, 0)
    work = _Work(wanted, random)
    module.body = work.rewritten(module.body, "")
    if not work.twins:
        return TwinnedModule(source, (), work.assertions, 0)
    return TwinnedModule(
        ast.unparse(ast.fix_missing_locations(module)), tuple(work.twins), work.assertions, work.twinned
    )


class _Work:
    def __init__(self, wanted: frozenset[str], random: Random) -> None:
        self.wanted = wanted
        self.random = random
        self.twins: list[Twins] = []
        self.assertions = 0
        self.twinned = 0

    def rewritten(self, body: list[ast.stmt], prefix: str) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.ClassDef) and not prefix:
                node.body = self.rewritten(node.body, f"{node.name}.")
                result.append(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and prefix + node.name in self.wanted:
                result += self._variants(node, prefix)
            else:
                result.append(node)
        return result

    def _variants(self, test: Function, prefix: str) -> list[Function]:
        found = literals(test)
        self.assertions += count_assertions(test)
        chosen = found if len(found) <= MAX_DECOYS else self.random.sample(found, MAX_DECOYS)
        decoys, covered = [], set()
        for literal in chosen:
            decoy = copy.deepcopy(test)
            if literal.spoiled(decoy, self.random):
                decoys.append(decoy)
                covered.add(literal.assertion)
        if not decoys:
            return [test]
        self.twinned += len(covered)
        qualified = prefix + test.name
        for variant in (test, *decoys):
            variant.name = f"{variant.name}_{self.random.getrandbits(48):012x}"
        self.twins.append(Twins(qualified, prefix + test.name, tuple(prefix + decoy.name for decoy in decoys)))
        variants = [test, *decoys]
        self.random.shuffle(variants)
        return variants
