"""Decoy twins: a hidden test rewritten into variants of which one holds the right value, under names that tell nothing.

A process that forges results has to know which variant is true; that is what solving the task means. The list of
names stays outside. The variants of a test replace it where it stood, in random order.

Counting tells nothing: in the variants of a test a right value stands exactly as often as the wrong one beside it. Who
looks at how the variants resemble each other is left with two of them, one right everywhere and one nowhere."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from random import Random
from typing import Any

from securebench.verifiers.suites.assertions import Function, Literal, count_assertions, literals
from securebench.verifiers.suites.wrong_values import wrong_value

MAX_ALONE = 5  # literals of one test that are looked at one by one; two decoys for each


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
        self.wrong: dict[str, list[Any] | None] = {}
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
        self.assertions += count_assertions(test)
        pairs = [(literal, wrong) for literal in literals(test) if (wrong := self._wrong(literal)) is not None]
        if not pairs:
            return [test]
        self.twinned += len({literal.assertion for literal, _ in pairs})
        _say_nothing(test)
        decoys = [_spoiled(test, [pairs[number] for number in sorted(some)]) for some in self._chosen(len(pairs))]
        qualified = prefix + test.name
        for variant in (test, *decoys):
            variant.name = f"{variant.name}_{self.random.getrandbits(48):012x}"
        self.twins.append(Twins(qualified, prefix + test.name, tuple(prefix + decoy.name for decoy in decoys)))
        variants = [test, *decoys]
        self.random.shuffle(variants)
        return variants

    def _wrong(self, literal: Literal) -> list[Any] | None:
        """The wrong value that stands beside a right one: the same wherever in the module that right one stands."""
        key = repr(literal.value)
        if key not in self.wrong:
            try:
                self.wrong[key] = [wrong_value(literal.value, self.random)]
            except ValueError:
                self.wrong[key] = None
        return self.wrong[key]

    def _chosen(self, count: int) -> list[frozenset[int]]:
        """Which literals are wrong in each decoy. With every choice stands its opposite, so that every value stands as
        often as its rival; with one or all but one wrong, each chosen literal is looked at by itself."""
        every = frozenset(range(count))
        single = [frozenset({one}) for one in self.random.sample(sorted(every), min(count, MAX_ALONE))]
        found = {every, *single, *(every - one for one in single)} - {frozenset()}
        return sorted(found, key=sorted)


def _spoiled(test: Function, pairs: list[tuple[Literal, list[Any]]]) -> Function:
    decoy = copy.deepcopy(test)
    for literal, [wrong] in pairs:
        literal.spoil(decoy, wrong)
    return decoy


def _say_nothing(test: Function) -> None:
    """Take out what may tell the right value in words: the docstring, and what a failed assertion would say."""
    if len(test.body) > 1 and isinstance(test.body[0], ast.Expr) and isinstance(test.body[0].value, ast.Constant):
        del test.body[0]
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            node.msg = None
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assert")
        ):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "msg"]
