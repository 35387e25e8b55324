"""Where things may appear in a workspace. Pure: takes paths, returns nothing or raises.

Rules, all decided on canonical keys (NFC + casefold), so that no spelling slips past:
- nothing appears at or beneath a denied path: those names mean "answers" to agents and to checkers;
- nothing but the framework appears beneath `securebench/` or at `task.json`;
- no two things appear at the same place, nor one inside the other, unless both are directories we merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from types import MappingProxyType

from securebench._paths import canonical_key, overlaps
from securebench.resources import Visibility

FRAMEWORK_ROOT = PurePosixPath("securebench")
TASK_FILE = PurePosixPath("task.json")

COMPONENT_ROOTS: Mapping[Visibility, PurePosixPath] = MappingProxyType(
    {
        Visibility.PUBLIC: FRAMEWORK_ROOT / "public",
        Visibility.EVALUATION_INPUTS: FRAMEWORK_ROOT / "evaluation_inputs",
        Visibility.HIDDEN: FRAMEWORK_ROOT / "evaluator",
    }
)

DENIED_NAMES = frozenset(
    {
        "ground_truth",
        "eval",
        "evaluation",
        "evaluator",
        "evaluation_inputs",
        "scorer",
        "grader",
        "verifier",
        "oracle",
        "hidden",
        "gold",
    }
)
"""First parts no mount may have; canonical spelling."""


class PathRefused(ValueError):
    """A place that the policy does not give away. The message names the path and the rule."""


def check_mount(mount: PurePosixPath, task_file: PurePosixPath = TASK_FILE) -> None:
    """A place a pack asks for. Raises PathRefused."""
    key = canonical_key(mount)
    if key[0] in DENIED_NAMES:
        raise PathRefused(f"mount {mount} is refused: nothing may appear at or beneath /{key[0]}")
    for reserved in (FRAMEWORK_ROOT, task_file):
        if overlaps(key, canonical_key(reserved)):
            raise PathRefused(f"mount {mount} is refused: {reserved} belongs to the framework")


def check_collisions(mounts: Iterable[PurePosixPath]) -> None:
    """No two mounts may be equal, or parent and child. Raises PathRefused naming the first pair.

    Sorted by key, a parent is directly followed by one of its descendants, so neighbours suffice."""
    ordered = sorted((canonical_key(mount), mount) for mount in mounts)
    for (first_key, first), (second_key, second) in pairwise(ordered):
        if overlaps(first_key, second_key):
            raise PathRefused(f"mounts {first} and {second} collide")
