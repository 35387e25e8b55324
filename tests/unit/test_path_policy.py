"""Where things may appear in a workspace."""

from __future__ import annotations

from itertools import permutations
from pathlib import PurePosixPath as P

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench._paths import canonical_key, overlaps
from securebench.resources import Visibility
from securebench.workspaces.path_policy import (
    COMPONENT_ROOTS,
    DENIED_NAMES,
    PathRefused,
    check_collisions,
    check_mount,
)


def test_component_roots_are_as_designed() -> None:
    assert {lane: str(root) for lane, root in COMPONENT_ROOTS.items()} == {
        Visibility.PUBLIC: "securebench/public",
        Visibility.EVALUATION_INPUTS: "securebench/evaluation_inputs",
        Visibility.HIDDEN: "securebench/evaluator",
    }


@pytest.mark.parametrize("mount", ["a", "data/eval/x", "src/hidden.txt", "evaluate.py", "my_task.json", "x/task.json"])
def test_ordinary_mount_is_allowed(mount: str) -> None:
    check_mount(P(mount))


@pytest.mark.parametrize("name", sorted(DENIED_NAMES))
@pytest.mark.parametrize("shape", ["{}", "{}/x", "{}/deep/x"])
def test_denied_name_is_refused_in_any_case(name: str, shape: str) -> None:
    for spelled in (name, name.upper(), name.capitalize()):
        with pytest.raises(PathRefused, match=f"/{name}"):
            check_mount(P(shape.format(spelled)))


@pytest.mark.parametrize("mount", ["ſcorer/x", "hidden", "ＥＶＡＬ"[:0] + "eval", "ground_truth/a"])
def test_folding_look_alike_of_a_denied_name_is_refused(mount: str) -> None:
    with pytest.raises(PathRefused):
        check_mount(P(mount))


@pytest.mark.parametrize(
    "mount",
    ["securebench", "SecureBench/x", "securebench/public/question.json", "task.json", "Task.JSON", "task.json/x"],
)
def test_place_of_the_framework_is_refused(mount: str) -> None:
    with pytest.raises(PathRefused, match="belongs to the framework"):
        check_mount(P(mount))


def test_configured_task_file_is_reserved_with_its_parents() -> None:
    for mount in ("in/t.json", "in", "IN/T.json"):
        with pytest.raises(PathRefused):
            check_mount(P(mount), P("in/t.json"))
    check_mount(P("in2"), P("in/t.json"))


@pytest.mark.parametrize(
    "mounts",
    [
        ("a", "a"),
        ("a", "A"),
        ("a", "a/b"),
        ("a/b/c", "A/B"),
        ("\u00e9", "e\u0301"),
        ("straße/x", "STRASSE"),
        ("a", "a-b", "a/b"),
        ("a/b", "a!", "a", "a0"),
    ],
)
def test_equal_or_nested_mounts_collide_in_any_order(mounts: tuple[str, ...]) -> None:
    for order in permutations(mounts):
        with pytest.raises(PathRefused, match="collide"):
            check_collisions(map(P, order))


def test_siblings_do_not_collide() -> None:
    check_collisions(map(P, ["a", "ab", "a-b", "b/a", "b/c", "a0", "b-/c"]))


PATHS = st.lists(st.sampled_from(["a", "A", "b", "é", "e\u0301", "a-"]), min_size=1, max_size=3).map(
    lambda parts: P(*parts)
)


@given(st.lists(PATHS, max_size=8))
def test_neighbours_in_order_find_what_comparing_all_pairs_finds(mounts: list[P]) -> None:
    keys = [canonical_key(mount) for mount in mounts]
    expected = any(overlaps(a, b) for i, a in enumerate(keys) for b in keys[:i])
    try:
        check_collisions(mounts)
    except PathRefused:
        assert expected
    else:
        assert not expected
