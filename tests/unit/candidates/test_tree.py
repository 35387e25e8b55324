"""Trees and deltas as values: what a digest pins, and that JSON gives back exactly what was written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from securebench._canonical import digest_bytes
from securebench.candidates.tree import (
    Change,
    Delta,
    Tree,
    TreeEntry,
    apply_delta,
    delta_between,
)

A, B = digest_bytes(b"a"), digest_bytes(b"b")
BASE = Tree.of(
    [
        TreeEntry.directory("d"),
        TreeEntry.file("d/f", A, 1),
        TreeEntry.link("l", "d/f"),
        TreeEntry.file("x", A, 1, executable=True),
    ]
)


def changed(*entries: TreeEntry, without: str = "") -> Tree:
    kept = {entry.path: entry for entry in BASE.entries if entry.path != without}
    return Tree.of((kept | {entry.path: entry for entry in entries}).values())


OTHERS = {
    "content": changed(TreeEntry.file("d/f", B, 1)),
    "size": changed(TreeEntry.file("d/f", A, 2)),
    "mode": changed(TreeEntry.file("d/f", A, 1, executable=True)),
    "name": changed(TreeEntry.file("d/g", A, 1), without="d/f"),
    "target": changed(TreeEntry.link("l", "x")),
    "kind": changed(TreeEntry.file("l", digest_bytes(b"d/f"), 3)),
    "empty directory": changed(TreeEntry.directory("e")),
    "missing": changed(without="x"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_digest_pins(what: str) -> None:
    assert OTHERS[what].digest != BASE.digest
    assert OTHERS[what] == Tree.of(reversed(OTHERS[what].entries)), "order of making does not matter"


@pytest.mark.parametrize("what", OTHERS)
def test_delta_leads_from_one_tree_to_the_other_and_back(what: str) -> None:
    there, back = delta_between(BASE, OTHERS[what]), delta_between(OTHERS[what], BASE)
    assert there
    assert apply_delta(BASE, there) == OTHERS[what]
    assert apply_delta(OTHERS[what], back) == BASE
    assert there.digest != back.digest


def test_no_difference_is_an_empty_delta() -> None:
    assert not delta_between(BASE, BASE)
    assert apply_delta(BASE, Delta()) == BASE


def test_delta_applies_only_to_what_it_was_taken_from() -> None:
    delta = delta_between(BASE, OTHERS["content"])
    with pytest.raises(ValueError, match="d/f is not what"):
        apply_delta(OTHERS["mode"], delta)
    with pytest.raises(ValueError, match="is there already"):
        apply_delta(BASE, Delta(added=(TreeEntry.file("x", B, 1),)))
    with pytest.raises(ValueError, match="does not lie in a directory"):
        apply_delta(BASE, Delta(deleted=(TreeEntry.directory("d"),)))


def test_files_size_and_get() -> None:
    assert [entry.path for entry in BASE.files] == ["d/f", "x"]
    assert BASE.total_bytes == 2
    assert BASE.get("l") == TreeEntry.link("l", "d/f")
    assert BASE.get("nothing") is None


@pytest.mark.parametrize("what", OTHERS)
def test_json_round_trip(what: str) -> None:
    tree, delta = OTHERS[what], delta_between(BASE, OTHERS[what])
    assert Tree.from_json(json.loads(json.dumps(tree.as_json()))) == tree
    assert Delta.from_json(json.loads(json.dumps(delta.as_json()))) == delta


FILE = TreeEntry.file("x", A, 1).as_json()
LINK = TreeEntry.link("l", "x").as_json()


@pytest.mark.parametrize(
    "entries",
    [
        [FILE | {"path": "../x"}],
        [FILE | {"path": "/x"}],
        [FILE | {"path": "a/x"}],
        [FILE | {"path": "x\n"}],
        [FILE | {"path": ""}],
        [FILE | {"path": "x\\y"}],
        [FILE | {"path": "x/"}],
        [FILE, FILE],
        [FILE | {"path": "b"}, FILE | {"path": "a"}],
        [LINK, FILE | {"path": "l/x"}],
        [FILE, FILE | {"path": "x/y"}],
        [FILE | {"mode": 0o4755}],
        [FILE | {"mode": True}],
        [FILE | {"mode": 420.0}],
        [FILE | {"size": -1}],
        [FILE | {"digest": "sha256:" + "A" * 64}],
        [FILE | {"digest": "../../etc/passwd"}],
        [FILE | {"kind": "device"}],
        [FILE | {"target": None}],
        [FILE | {"target": "y"}],
        [FILE | {"extra": 1}],
        [{key: value for key, value in FILE.items() if key != "mode"}],
        [LINK | {"target": "/etc/passwd"}],
        [LINK | {"target": "../x"}],
        [LINK | {"target": "y"}],
        [TreeEntry.directory("d").as_json() | {"mode": 0o777}],
        ["x"],
        "x",
        None,
    ],
)
def test_json_of_no_tree_is_refused(entries: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Tree.from_json({"entries": entries})


def test_json_of_no_delta_is_refused() -> None:
    good = delta_between(BASE, OTHERS["content"]).as_json()
    change = good["changed"][0]
    for bad in (
        good | {"more": []},
        {"added": [], "deleted": []},
        good | {"changed": [change, change]},
        good | {"changed": [{"before": change["before"], "after": change["before"]}]},
        good | {"changed": [{"before": FILE, "after": change["after"]}]},
        good | {"changed": {}},
        good | {"deleted": [change["before"]]},
        good | {"added": [FILE | {"path": "b"}, FILE | {"path": "a"}]},
    ):
        with pytest.raises(ValueError, match=r".+"):
            Delta.from_json(bad)


def test_parts_of_a_delta_count_into_its_digest() -> None:
    entry = TreeEntry.file("x", A, 1)
    deltas = [
        Delta(added=(entry,)),
        Delta(deleted=(entry,)),
        Delta(changed=(Change(entry, entry._replace(digest=B)),)),
        Delta(changed=(Change(entry._replace(digest=B), entry),)),
        Delta(),
    ]
    assert len({delta.digest for delta in deltas}) == len(deltas)
    assert replace(deltas[0]).digest == deltas[0].digest
