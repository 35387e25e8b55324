"""The paired permutation test: had the two runs been swapped on any task, would they be as far apart?

Under the hypothesis that both are the same on every task, each difference could as well have the other sign. The
p-value is the share of all sign patterns whose sum is at least as far from zero.

Where differences are few, or of small whole numbers of attempts, all patterns are counted, in whole numbers. Where all
are of one size, it is McNemar's test. Else patterns are drawn, with a fixed seed, and the observed one is counted among
them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from securebench._statistics.distributions import half_binomial_tail, power_share

DRAWS = 50_000
SEED = 20_260_101
_FEW = 16  # differences whose patterns are gone through one by one
_MOST_WORK = 2**30  # bytes that counting may move: about a second
_MOST_SUMS = 2**21  # sums that patterns may have
_FINEST = 2**30  # units of a difference that has no small denominator
_DENOMINATOR = 10_000
_SAME = Fraction(1, 10**12)  # what adding up scores loses


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """`draws` is how many patterns were drawn; 0 where all there are were counted."""

    p_value: float
    draws: int = 0

    @property
    def exact(self) -> bool:
        return not self.draws


def permutation_test(differences: Sequence[float], draws: int = DRAWS, seed: int = SEED) -> PermutationTest:
    """The two-sided p-value of one difference for each task. 1 where none differs."""
    units, rounded = _in_units(differences)
    signed = [one for one in units if one]
    if not signed:
        return PermutationTest(1.0)
    sizes, observed = [abs(one) for one in signed], abs(sum(signed))
    if rounded:
        observed = max(0, observed - len(sizes))  # sums that are the same stay so, whichever way they were rounded
    if set(sizes) == {1}:
        tail = half_binomial_tail(len(sizes), (len(sizes) + observed) // 2)
        return PermutationTest(min(1.0, 2 * tail))
    if len(sizes) <= _FEW:
        return _gone_through(sizes, observed)
    sums = sum(sizes) + 1
    if sums <= _MOST_SUMS and len(sizes) * sums * len(sizes) // 16 <= _MOST_WORK:
        return _counted(sizes, observed)
    return _drawn(sizes, observed, draws, seed)


def _in_units(differences: Sequence[float]) -> tuple[list[int], bool]:
    """The differences as whole numbers of one unit: their common denominator if it is small, else a fine one to which
    they are rounded."""
    near = {one: Fraction(one).limit_denominator(_DENOMINATOR) for one in set(differences)}
    unit = math.lcm(*(share.denominator for share in near.values()))
    if unit > _FINEST or any(abs(share - Fraction(one)) > _SAME for one, share in near.items()):
        return [round(one * _FINEST) for one in differences], True
    units = {one: int(share * unit) for one, share in near.items()}
    shared = math.gcd(*units.values()) or 1
    return [units[one] // shared for one in differences], False


def _gone_through(sizes: list[int], observed: int) -> PermutationTest:
    sums = [0]
    for size in sizes:
        sums = [one + sign * size for one in sums for sign in (1, -1)]
    return PermutationTest(sum(abs(one) >= observed for one in sums) / len(sums))


def _counted(sizes: list[int], observed: int) -> PermutationTest:
    """How many patterns have which sum, as the digits of one number: a further difference d, added or not, multiplies
    it by 1 + x^d. With the sum S of those added, the pattern's sum is 2S - Σ d."""
    count, total = len(sizes), sum(sizes)
    width = (count + 8) // 8 * 8  # bits of a digit that can hold 2**count
    patterns = 1
    for size in sorted(sizes):
        patterns += patterns << size * width
    least = -(-(total + observed) // 2)  # the smallest S with 2S - total ≥ observed
    digits = (patterns >> least * width).to_bytes((total - least + 1) * width // 8, "little")
    step = width // 8
    upper = sum(int.from_bytes(digits[at : at + step], "little") for at in range(0, len(digits), step))
    return PermutationTest(min(1.0, 2 * power_share(upper, count)))


def _drawn(sizes: list[int], observed: int, draws: int, seed: int) -> PermutationTest:
    """The sum of those added, for a random set of them, from the binary digits of the sizes: each digit's place value
    times how many of the set have it."""
    count, total = len(sizes), sum(sizes)
    planes = [
        (1 << place, sum(1 << index for index, size in enumerate(sizes) if size >> place & 1))
        for place in range(max(sizes).bit_length())
    ]
    source = random.Random(seed)  # noqa: S311 - reproducible, not secret
    as_far = 0
    for _ in range(draws):
        added = source.getrandbits(count)
        some = sum(value * (added & plane).bit_count() for value, plane in planes)
        as_far += abs(2 * some - total) >= observed
    return PermutationTest((1 + as_far) / (1 + draws), draws)
