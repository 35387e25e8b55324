"""Contents between head and nodes: what was asked for arrives as it was, and nothing else is kept."""

from __future__ import annotations

import io
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest

from securebench import _fs, _json
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree, TreeEntry
from securebench.cluster.shipping import PIECE, Item, StoredContents, items_from, missing, sent_as, shipment
from securebench.cluster.talk import asked_for
from securebench.errors import IntegrityError
from securebench.resources import PackFile

OTHER = "sha256:" + "5" * 64


class Sides:
    """A head with a pack and a store, and a node with nothing."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.store, self.there = CandidateStore(base / "head"), CandidateStore(base / "node")
        self.head = StoredContents(self.store)
        self.node = StoredContents(self.there, base / "files")
        (base / "pack").mkdir()

    def pack_file(self, name: str) -> PackFile:
        with _fs.open_directory(self.base / "pack") as root:
            digest = _fs.tree_digest(root, PurePosixPath(name), 1000, 2**30)
        file = PackFile(self.base / "pack", PurePosixPath(name), PurePosixPath("m"), True, digest)
        self.head.know([file])
        return file

    def sent(self, *items: Item) -> bytes:
        return b"".join(shipment(self.head, items))

    def take(self, data: bytes, *asked: Item) -> None:
        self.node.take(io.BytesIO(data), asked)


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE])
def test_a_content_of_any_size_arrives(sides: Sides, size: int) -> None:
    data = os.urandom(size)
    item = Item("b", sides.store.put(data))
    assert missing(sides.node, [item, item]) == [item]
    sides.take(sides.sent(item), item)
    assert sides.there.read(item.digest, 2**30) == data
    assert missing(sides.node, [item]) == []


def test_holes_cost_nothing_on_the_way_and_where_they_arrive(sides: Sides) -> None:
    with (sides.base / "sparse").open("w+b") as file:
        for place in range(0, 64 * PIECE, 4 * PIECE):
            file.seek(place)
            file.write(b"x")
        file.truncate(64 * PIECE)
        file.seek(0)
        with sides.store.batch() as batch:
            item = Item("b", batch.put_file(file.fileno(), 64 * PIECE, sparse=True)[0])
    data = sides.sent(item)
    assert len(data) < 16 * 4096 + 10_000
    sides.take(data, item)
    (stored,) = (path for path in (sides.base / "node" / "blobs").rglob("*") if path.is_file())
    assert stored.stat().st_size == 64 * PIECE
    assert stored.stat().st_blocks * 512 < PIECE
    assert sides.there.read(item.digest, 2**30) == sides.store.read(item.digest, 2**30)


def test_what_is_on_its_way_lies_beside_the_store(sides: Sides) -> None:
    with sides.node.spool() as file:
        file.rollover()
        assert os.fstat(file.fileno()).st_dev == (sides.base / "node").stat().st_dev
        assert str(sides.base / "node") in os.readlink(f"/proc/self/fd/{file.fileno()}")


@pytest.mark.parametrize("zeros", [True, False])
def test_no_more_is_taken_than_was_agreed(sides: Sides, zeros: bool) -> None:
    data = bytes(4 * PIECE) if zeros else os.urandom(4 * PIECE)
    item = Item("b", sides.store.put(data))
    with pytest.raises(IntegrityError, match="more came"):
        sides.node.take(io.BytesIO(sides.sent(item)), [item], 4 * PIECE - 1)
    assert not sides.node.has(item)
    assert len(sides.sent(item)) <= sent_as(4 * PIECE, 1)
    sides.node.take(io.BytesIO(sides.sent(item)), [item], 4 * PIECE)
    assert sides.node.has(item)


def test_a_tree_arrives_with_its_contents(sides: Sides) -> None:
    one, two = sides.store.put(b"one"), sides.store.put(b"two")
    tree = Tree.of(
        [
            TreeEntry.directory("d"),
            TreeEntry.file("d/one", one, 3, executable=True),
            TreeEntry.file("two", two, 3),
            TreeEntry.link("l", "two"),
        ]
    )
    sides.store.save(tree)
    items = Item("b", one), Item("b", two), Item("t", tree.digest)
    sides.take(sides.sent(*items), *items)
    assert sides.there.load(tree.digest) == tree


def test_a_tree_without_its_contents_is_refused(sides: Sides) -> None:
    one = sides.store.put(b"one")
    tree = Tree.of([TreeEntry.file("one", one, 3)])
    item = Item("t", sides.store.save(tree))
    with pytest.raises(IntegrityError):
        sides.take(sides.sent(item), item)
    assert not sides.node.has(item)


def test_files_and_directories_of_a_pack_arrive_with_names_and_modes(sides: Sides) -> None:
    pack = sides.base / "pack"
    (pack / "tree" / "deep" / "empty").mkdir(parents=True)
    (pack / "tree" / "ünï").write_bytes(os.urandom(PIECE + 7))
    (pack / "tree" / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (pack / "tree" / "deep" / "run.sh").chmod(0o755)
    (pack / "none").write_bytes(b"")
    for name in ("tree", "none"):
        item = Item("p", sides.pack_file(name).digest)
        sides.take(sides.sent(item), item)
        with _fs.open_directory(sides.node.kept(item.digest)) as root:
            assert _fs.tree_digest(root, PurePosixPath("files"), 1000, 2**30) == item.digest
    came = sides.node.kept(sides.pack_file("tree").digest) / "files"
    assert os.access(came / "deep" / "run.sh", os.X_OK)
    assert (came / "deep" / "empty").is_dir()
    assert sorted(path.name for path in (sides.base / "files").iterdir() if path.name.startswith(".")) == []


def test_two_attempts_may_bring_the_same_files_at_once(sides: Sides) -> None:
    (sides.base / "pack" / "tree").mkdir()
    for number in range(40):
        (sides.base / "pack" / "tree" / str(number)).write_bytes(os.urandom(5000))
    item = Item("p", sides.pack_file("tree").digest)
    data = sides.sent(item)
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(sides.take, data, item) for _ in range(8)]:
            done.result()
    assert len(list((sides.node.kept(item.digest) / "files").iterdir())) == 40
    assert len(list((sides.base / "files").iterdir())) == 1, "nothing half-written is left"


def test_other_bytes_than_the_digest_says_are_refused(sides: Sides) -> None:
    item = Item("b", sides.store.put(b"right"))
    data = sides.sent(item)
    with pytest.raises(IntegrityError, match="other bytes"):
        sides.take(data.replace(b"right", b"wrong"), item)
    assert not sides.node.has(item)
    sides.take(data, item)


def test_changed_files_of_a_pack_are_refused(sides: Sides) -> None:
    (sides.base / "pack" / "f").write_bytes(b"right")
    item = Item("p", sides.pack_file("f").digest)
    data = sides.sent(item)
    with pytest.raises(IntegrityError, match="other bytes"):
        sides.take(data.replace(b"right", b"wrong"), item)
    with pytest.raises(IntegrityError, match="other bytes"):
        sides.take(data.replace(struct.pack("<cH", b"f", 5), struct.pack("<cH", b"x", 5)), item)
    assert not sides.node.has(item)
    sides.take(data, item)
    assert sides.node.has(item)


def test_what_was_not_asked_for_or_comes_twice_is_refused(sides: Sides) -> None:
    one, two = Item("b", sides.store.put(b"one")), Item("b", sides.store.put(b"two"))
    with pytest.raises(IntegrityError, match="not asked for"):
        sides.take(sides.sent(one, two), one)
    with pytest.raises(IntegrityError, match="not asked for"):
        sides.take(sides.sent(one) * 2, one)
    with pytest.raises(IntegrityError, match="not sent"):
        sides.take(sides.sent(one), one, two)
    with pytest.raises(IntegrityError, match="not asked for"):
        sides.take(sides.sent(one), Item("t", one.digest))


def test_a_shipment_cut_anywhere_is_refused(sides: Sides) -> None:
    (sides.base / "pack" / "f").write_bytes(b"some bytes")
    items = Item("b", sides.store.put(b"content")), Item("p", sides.pack_file("f").digest)
    data = sides.sent(*items)
    for end in range(len(data)):
        with pytest.raises(IntegrityError):
            sides.take(data[:end], *items)
    sides.take(data, *items)


@pytest.mark.parametrize(
    "path",
    [b"/etc/x", b"files/../../x", b"../x", b"elsewhere", b"", b".", b"files/\xff", b"files/\0", b"files/a/../../../x"],
)
def test_paths_that_lead_elsewhere_are_refused(sides: Sides, path: bytes) -> None:
    entry = struct.pack("<cHQ", b"f", len(path), 1) + path + b"x"
    with pytest.raises(IntegrityError):
        sides.take(_shipped("p", OTHER, entry), Item("p", OTHER))
    assert {entry.name for entry in sides.base.iterdir()} <= {"pack", "head", "node", "files"}
    assert not list((sides.base / "files").iterdir())


def test_the_same_path_twice_and_a_file_as_a_directory_are_refused(sides: Sides) -> None:
    file = struct.pack("<cHQ", b"f", 5, 1) + b"filesx"
    beneath = struct.pack("<cHQ", b"f", 7, 1) + b"files/ax"
    for entries in (file + file, file + beneath):
        with pytest.raises(IntegrityError):
            sides.take(_shipped("p", OTHER, entries), Item("p", OTHER))


def test_trees_that_are_none_are_refused(sides: Sides) -> None:
    for data in (b"", b"[]", b"{", b"[" * 100_000, _json.dumps(Tree.of([]).as_json()).encode()):
        with pytest.raises(IntegrityError):
            sides.take(_shipped("t", OTHER, data), Item("t", OTHER))


def test_a_piece_larger_than_agreed_is_refused(sides: Sides) -> None:
    head = struct.pack("<c32s", b"b", bytes.fromhex(OTHER[7:]))
    with pytest.raises(IntegrityError, match="too large"):
        sides.take(head + struct.pack("<I", PIECE + 1) + b"x" * (PIECE + 1), Item("b", OTHER))


@pytest.mark.parametrize("value", [None, {}, [1], [["b"]], [["q", OTHER]], [["b", "../x"]], [["b", 1]], [[[], OTHER]]])
def test_lists_of_contents_that_are_none_are_refused(value: object) -> None:
    with pytest.raises(IntegrityError):
        items_from(value)


def test_only_what_belongs_to_an_attempt_can_be_asked_for() -> None:
    mine, private = Item("p", "sha256:" + "1" * 64), Item("p", OTHER)
    data = _json.dumps([list(mine)]).encode()
    assert asked_for(data, [mine]) == (mine,)
    with pytest.raises(IntegrityError, match="nothing to do with its attempt"):
        asked_for(_json.dumps([list(mine), list(private)]).encode(), [mine])
    with pytest.raises(IntegrityError):
        asked_for(b"nonsense", [mine])


def _shipped(kind: str, digest: str, data: bytes) -> bytes:
    head = struct.pack("<c32s", kind.encode(), bytes.fromhex(digest[7:]))
    body = b"".join(
        struct.pack("<I", len(part)) + part
        for part in (data[start : start + PIECE] for start in range(0, len(data), PIECE))
    )
    return head + body + struct.pack("<I", 0)
