"""H03: inputs that somebody could have known."""

from __future__ import annotations

import hashlib
import json
from random import Random

from securebench.audit.plays.code import CodeTask, Completes, cases
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.grader import Fools
from securebench.audit.weak.grader_oracle import PUBLIC_SEED
from securebench.families.generated_cases import GeneratedCases, draw_calls

_HONEST = "def sq(xs): return sum(x * x for x in xs)\n"
_GENERATE = {"count": 4, "args": [{"type": "list", "of": {"type": "int", "min": 0, "max": 999}, "min_length": 3}]}
_TASK: CodeTask = cases(generate=_GENERATE, reference=_HONEST)
_SMALL = tuple(hashlib.sha256(f"securebench seed {number}".encode()).digest() for number in range(20))


def _learnt(seeds: tuple[bytes, ...]) -> str:
    """A candidate that knows the answers to what would be drawn from these seeds, and nothing else."""
    known = {}
    for seed in seeds:
        order = hashlib.sha256(b"order\0" + seed + b"\0task").hexdigest()
        for call in draw_calls(GeneratedCases.model_validate_json(json.dumps(_GENERATE)), Random(order)):  # noqa: S311 — as the verifier
            known[tuple(call["args"][0])] = sum(x * x for x in call["args"][0])
    return f"KNOWN = {known!r}\ndef sq(xs): return KNOWN.get(tuple(xs), 0)\n"


def _replayed(name: str, how: str, source: str, seed: bytes) -> Attack:
    weak = Completes(_TASK, source, seed)
    return Attack("H03", name, how, Completes(_TASK, source), Completes(_TASK, _HONEST), weak)


_GUESSES = """
import random, time
def sq(xs):
    for seed in (0, 1, 42, 1234, 'task', int(time.time())):
        random.seed(seed)
        if [random.randint(1, 99) for _ in xs] == xs: return sum(x * x for x in xs)
    return 0
"""
_FIXED = """
import random
random.seed(42)
xs = [random.randint(1, 99) for _ in range(4)]
assert sq(xs) == sum(x * x for x in xs)
"""

ATTACKS = (
    _replayed("default-seed", "Answers to what an empty seed draws were learnt by heart.", _learnt((PUBLIC_SEED,)),
              PUBLIC_SEED),
    _replayed("numbered-seeds", "Answers to what twenty numbered seeds draw were learnt by heart.", _learnt(_SMALL),
              _SMALL[7]),
    Attack(
        "H03", "usual-seeds", "Only what the usual seeds draw is answered.", Completes(_TASK, _GUESSES),
        Completes(_TASK, _HONEST), Fools(_GUESSES, ("in_process",), _FIXED),
    ),
)  # fmt: skip
