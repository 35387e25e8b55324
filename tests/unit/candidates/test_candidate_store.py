"""The candidate store: written once, found by digest, checked on every read, safe to share and to interrupt."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.candidates.trees import Link, Program, capture, on_disk, stored, write

from securebench.candidates._blob_writing import SMALL
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree, TreeEntry
from securebench.errors import IntegrityError, StoreError

SIZES = [0, 1, SMALL - 1, SMALL, SMALL + 1, 3 * 2**20 + 7]


def name(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", SIZES)
def test_content_comes_back_from_bytes_and_from_a_file(store: CandidateStore, tmp_path: Path, size: int) -> None:
    data, other = os.urandom(size), os.urandom(size)
    assert store.put(data) == name(data)
    (tmp_path / "file").write_bytes(other)
    with (tmp_path / "file").open("rb") as file:
        assert store.put(file.fileno()) == name(other)
    for again in (store, CandidateStore(store.directory)):
        for content in (data, other):
            assert again.read(name(content), size) == content
            with again.open(name(content)) as opened:
                assert opened.read(10) + opened.read() == content
            assert again.has(name(content))


def test_nothing_is_made_before_the_first_put(store: CandidateStore) -> None:
    assert not store.has(name(b"x"))
    with pytest.raises(IntegrityError, match="not in the candidate store"):
        store.read(name(b"x"), 10)
    assert not store.directory.exists()


def test_same_content_is_stored_once_and_read_only(store: CandidateStore) -> None:
    small, large = b"s" * 100, b"l" * (SMALL + 1)
    for _ in range(3):
        with store.batch() as batch:
            for _ in range(3):
                batch.put_bytes(small)
                batch.put_bytes(large)
    files = [path for path in store.directory.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert {path.stat().st_mode & 0o777 for path in files} == {0o444}


def test_many_small_contents_share_a_few_files(store: CandidateStore) -> None:
    contents = [f"content {number}".encode() for number in range(5000)]
    with store.batch() as batch:
        for content in contents:
            batch.put_bytes(content)
    assert len([path for path in store.directory.rglob("*") if path.is_file()]) == 1
    again = CandidateStore(store.directory)
    assert all(again.read(name(content), 100) == content for content in contents[::97])


def test_batch_that_fails_leaves_nothing(store: CandidateStore) -> None:
    with suppress(ZeroDivisionError), store.batch() as batch:
        batch.put_bytes(b"small")
        _ = 1 // 0
    assert not store.has(name(b"small"))
    assert not any(path.is_file() for path in store.directory.rglob("*"))


def test_read_is_bounded(store: CandidateStore) -> None:
    digest = store.put(b"12345")
    with pytest.raises(ValueError, match="more than 4 bytes"):
        store.read(digest, 4)


@pytest.mark.parametrize("digest", ["", "../../x", "sha256:" + "0" * 63, "sha256:" + "G" * 64, "sha256:../" + "0" * 61])
def test_text_that_is_no_digest_is_no_path(store: CandidateStore, digest: str) -> None:
    store.put(b"x")
    for use in (lambda: store.read(digest, 1), lambda: store.load(digest), lambda: store.open(digest)):
        with pytest.raises(IntegrityError):
            use()
    assert not store.has(digest)


# -- what changed on disk is found ---------------------------------------------------------------------------------


def overwrite(path: Path, offset: int, data: bytes) -> None:
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(offset if offset >= 0 else path.stat().st_size + offset)
        file.write(data)


def only(store: CandidateStore, part: str) -> Path:
    [path] = [path for path in (store.directory / part).rglob("*") if path.is_file()]
    return path


@pytest.mark.parametrize("size", [100, SMALL + 1])
def test_changed_content_is_found_when_read(store: CandidateStore, size: int) -> None:
    digest = store.put(b"a" * size)
    overwrite(only(store, "packs" if size == 100 else "blobs"), 20, b"b")
    for use in (lambda s: s.read(digest, size), lambda s: s.open(digest).read()):
        with pytest.raises(IntegrityError, match="was changed"):
            use(CandidateStore(store.directory))


@pytest.mark.parametrize("cut", [1, 8, 40, 60, 100, 10_000])
def test_torn_pack_is_found(store: CandidateStore, cut: int) -> None:
    digest = store.put(b"a" * 200)
    path = only(store, "packs")
    path.chmod(0o600)
    os.truncate(path, max(0, path.stat().st_size - cut))
    with pytest.raises(IntegrityError, match="torn"):
        CandidateStore(store.directory).read(digest, 200)


@pytest.mark.parametrize("offset", [0, -1, -20, -48, -60, -85])
def test_changed_index_or_footer_is_found(store: CandidateStore, offset: int) -> None:
    digest = store.put(b"a" * 200)
    overwrite(only(store, "packs"), offset, b"\xff")
    with pytest.raises(IntegrityError, match="torn"):
        CandidateStore(store.directory).read(digest, 200)


def test_changed_tree_is_found(store: CandidateStore, tmp_path: Path) -> None:
    tree = stored({"a": b"1", "b": b"2"}, store, tmp_path / "tree")
    store.save(tree)
    path = only(store, "trees")
    text = path.read_bytes()
    for changed in (text.replace(b'"a"', b'"A"'), text[:-3], text.replace(b"420", b"493"), b"[]", b"", b"[" * 100_000):
        path.chmod(0o600)
        path.write_bytes(changed)
        with pytest.raises(IntegrityError):
            CandidateStore(store.directory).load(tree.digest)


def test_tree_is_saved_only_with_its_contents(store: CandidateStore) -> None:
    with pytest.raises(IntegrityError, match="x is not in"):
        store.save(Tree.of([TreeEntry.file("x", name(b"missing"), 7)]))


def test_size_that_the_content_does_not_have_is_found(store: CandidateStore, tmp_path: Path) -> None:
    digest = store.put(b"12345")
    (target := tmp_path / "out").mkdir()
    with pytest.raises(IntegrityError, match="has 5 bytes"):
        store.materialize(Tree.of([TreeEntry.file("x", digest, 3)]), target)


# -- trees ---------------------------------------------------------------------------------------------------------

CONTENTS = {
    "a/b/c.py": b"print()\n",
    "a/run": Program(b"#!/bin/sh\n"),
    "empty/dir": None,
    "file": b"",
    "link": Link("a/b"),
    "a/up": Link("../file"),
    "large": b"x" * (SMALL * 2),
    "ünï cödé": b"\0\1",
}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_materialized_tree_is_exact(store: CandidateStore, tmp_path: Path, umask: int) -> None:
    tree = stored(CONTENTS, store, tmp_path / "tree")
    assert CandidateStore(store.directory).load(store.save(tree)) == tree
    (target := tmp_path / "out").mkdir()
    before = os.umask(umask)
    try:
        store.materialize(tree, target)
    finally:
        os.umask(before)
    found = on_disk(target)
    assert found["a/b/c.py"] == ("file", 0o644, b"print()\n")
    assert found["a/run"] == ("file", 0o755, b"#!/bin/sh\n")
    assert found["empty/dir"] == ("directory", 0o755, b"")
    assert found["a/up"] == ("link", 0, b"../file")
    assert set(found) == {entry.path for entry in tree.entries}
    assert {path.lstat().st_mtime for path in [target, *target.rglob("*")]} == {1_000_000_000.0}
    assert capture(target, store).tree == tree


def test_materialize_only_into_an_empty_directory(store: CandidateStore, tmp_path: Path) -> None:
    tree = stored({"a": b"1"}, store, tmp_path / "tree")
    write(tmp_path / "full", {"other": b""})
    with pytest.raises(ValueError, match="not empty"):
        store.materialize(tree, tmp_path / "full")


def test_holes_need_no_disk(store: CandidateStore, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {})
    with (root / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(16 * 2**20)
        file.write(b"middle")
        file.truncate(32 * 2**20)
    tree = capture(root, store).tree
    (target := tmp_path / "out").mkdir()
    store.materialize(tree, target)
    assert (target / "sparse").stat().st_size == 32 * 2**20
    with (target / "sparse").open("rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek(16 * 2**20 - 1)
        assert file.read(8) == b"\0middle\0"
    assert only(store, "blobs").stat().st_blocks * 512 < 8 * 2**20
    assert (target / "sparse").stat().st_blocks * 512 < 8 * 2**20


# -- several writers, and interrupted ones -------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from securebench.candidates.store import CandidateStore
store = CandidateStore(Path(sys.argv[1]))
for round in range(5):
    with store.batch() as batch:
        for number in range(200):
            batch.put_bytes(b"%d of %d" % (number, round))
        batch.put_bytes(b"large %d" % round * 50_000)
print("done", flush=True)
"""


def expected() -> list[bytes]:
    small = [b"%d of %d" % (number, part) for number in range(200) for part in range(5)]
    return small + [b"large %d" % part * 50_000 for part in range(5)]


def test_processes_share_a_store(store: CandidateStore) -> None:
    argv = [sys.executable, "-c", WRITER, str(store.directory)]
    writers = [subprocess.Popen(argv, stdin=subprocess.DEVNULL) for _ in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    assert all(store.read(name(content), 10**6) == content for content in expected())
    assert not list((store.directory / "tmp").iterdir())


def test_threads_share_a_store(store: CandidateStore) -> None:
    problems: list[BaseException] = []

    def work() -> None:
        try:
            with store.batch() as batch:
                for content in expected():
                    batch.put_bytes(content)
            assert all(store.read(name(content), 10**6) == content for content in expected()[::50])
        except BaseException as error:  # noqa: BLE001
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_another_process_finds_what_was_put_since(store: CandidateStore) -> None:
    other = CandidateStore(store.directory)
    first = store.put(b"first")
    assert other.read(first, 10) == b"first"
    assert store.read(other.put(b"second"), 10) == b"second"


KILLED = """
import sys
from pathlib import Path
from securebench.candidates.store import CandidateStore
store = CandidateStore(Path(sys.argv[1]))
with store.batch() as batch:
    for number in range(5000):
        batch.put_bytes(b"%d" % number)
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_killed_writer_leaves_nothing_that_counts(store: CandidateStore) -> None:
    kept = store.put(b"kept")
    argv = [sys.executable, "-c", KILLED, str(store.directory)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        assert list((store.directory / "tmp").iterdir())
        CandidateStore(store.directory).put(b"meanwhile")
        assert list((store.directory / "tmp").iterdir()), "what a live process writes is left alone"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    again = CandidateStore(store.directory)
    again.put(b"new")
    assert again.read(kept, 10) == b"kept"
    assert not again.has(name(b"17"))
    assert not list((store.directory / "tmp").iterdir())


def test_store_that_cannot_be_written_is_the_hosts_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        CandidateStore(tmp_path / "file" / "store").put(b"x")


def test_layer_writes_only_what_is_new_and_is_gone_afterwards(tmp_path: Path) -> None:
    store = CandidateStore(tmp_path / "store", CandidateStore(tmp_path / "beneath"))
    small, large = store.put(b"small"), store.put(b"large" * 100_000)

    def files() -> set[Path]:
        return {path for path in tmp_path.rglob("*") if path.is_file()}

    before = files()
    layer = store.layer()
    assert [layer.put(b"small"), layer.put(b"large" * 100_000)] == [small, large]
    assert files() == before
    new = layer.put(b"new")
    assert (layer.read(new, 10), layer.read(small, 10)) == (b"new", b"small")
    assert not store.has(new)
    layer.remove()
    assert files() == before
    store.layer().remove()  # nothing was ever put
