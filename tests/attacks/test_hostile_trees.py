"""Class D: what hostile code leaves in a tree to be read by us, captured with the kernel's help and without it.

The catalogue plays these with agents in sandboxes, and with careless readers as their controls; here is what it does
not look at: what exactly is kept, and for which reason everything else is left out."""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.unit.candidates.trees import capture, store_bytes, write

from securebench._fs import open_directory
from securebench.candidates import _openat2
from securebench.candidates.captured import Captured
from securebench.candidates.extraction import text_from_file
from securebench.candidates.reader import read_tree
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Tree, TreeEntry
from securebench.errors import CandidateError, FailureReason

CANARY = b"canary-8d1f0c-of-the-host"
SECONDS_EACH = 6


@pytest.fixture
def store(tmp_path: Path) -> CandidateStore:
    return CandidateStore(tmp_path / "store")


@pytest.fixture(params=["openat2", "portable"])
def read(request: pytest.FixtureRequest, store: CandidateStore) -> Callable[[Path], Captured]:
    if request.param == "openat2" and not _openat2.available():
        pytest.skip("this kernel has no openat2")
    return lambda root: capture(root, store, portable=request.param == "portable")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of the host beside the tree."""
    return write(tmp_path / "outside", {"secret": CANARY, "dir/secret": CANARY})


@pytest.fixture
def tree(tmp_path: Path, outside: Path) -> Path:
    return write(tmp_path / "tree", {"honest.py": b"print()\n", "sub/dir/honest.py": b"print()\n"})


def reasons(captured: Captured) -> dict[str, str]:
    return {item.path: item.reason for item in captured.left_out}


# -- D01: links to files of the host -------------------------------------------------------------------------------


def plant_links(tree: Path, outside: Path) -> list[str]:
    links = {
        "absolute": str(outside / "secret"),
        "relative": "../outside/secret",
        "sub/dir/relative": "../../../outside/secret",
        "directory": str(outside / "dir"),
        "sub/climbs-later": "dir/../../../outside/secret",
        "chain2": "../outside/dir",
        "chain1": "chain2/secret",
        "root": "/",
        "self": "/proc/self/environ",
        "parent": "..",
    }
    for name, target in links.items():
        (tree / name).symlink_to(target)
    (tree / "sub/door").symlink_to("dir")
    return sorted(set(links) - {"chain1"})


def test_no_link_leads_the_reader_to_the_host(tree: Path, outside: Path, store: CandidateStore, read: Any) -> None:
    planted = plant_links(tree, outside)
    captured = read(tree)
    assert sorted(reasons(captured)) == planted
    assert CANARY not in store_bytes(store)
    kept = {entry.path: entry.target for entry in captured.tree.entries if entry.target is not None}
    assert kept == {"chain1": "chain2/secret", "sub/door": "dir"}, "the second half of the chain is left out"


# -- D02: links that become something only where the answers are ---------------------------------------------------


def test_link_that_resolves_only_in_the_verifier_brings_no_bytes(
    tree: Path, tmp_path: Path, read: Any, store: Any
) -> None:
    (tree / "answer.txt").symlink_to("/hidden/answer.txt")
    (tree / "beneath.txt").symlink_to("hidden/answer.txt")
    captured = read(tree)
    assert reasons(captured) == {"answer.txt": "a link to an absolute path"}
    assert captured.tree.get("beneath.txt") == TreeEntry.link("beneath.txt", "hidden/answer.txt")
    with open_directory(tree) as root:
        for name in ("answer.txt", "beneath.txt"):
            with pytest.raises(CandidateError) as caught:
                text_from_file(root, Path(name))  # type: ignore[arg-type]
            assert caught.value.reason is FailureReason.CANDIDATE_REFUSED, "a declared artifact must be a file"
    (verifier := tmp_path / "verifier").mkdir()
    store.materialize(captured.tree, verifier)
    write(verifier, {"hidden/answer.txt": b"gold"})
    assert (verifier / "beneath.txt").read_bytes() == b"gold", "positive control: why no verifier opens names"
    assert not any(entry.path == "beneath.txt" for entry in captured.tree.files), "and why it has no bytes to judge"


# -- D03: exchanged during the walk --------------------------------------------------------------------------------

EXCHANGER = """
import ctypes, os, random, sys, time
libc = ctypes.CDLL(None, use_errno=True)
tree, outside, until = sys.argv[1].encode(), sys.argv[2].encode(), time.monotonic() + float(sys.argv[3])
chosen = random.Random(int(sys.argv[4]))
def swap(a, b):
    libc.renameat2(-100, tree + b"/" + a, -100, tree + b"/" + b, 2)
names = [b"f%d" % n for n in range(12)] + [b"d%d" % n for n in range(12)] + [b"l%d" % n for n in range(12)]
names += [b"p0", b"d0/inner", b"d1/inner", b"d2/inner", b"m0", b"m1", b"d3/inner/deep"]
while time.monotonic() < until:
    for _ in range(200):
        swap(*chosen.sample(names, 2))
    try:
        os.utime(tree + b"/f1")
        descriptor = os.open(tree + b"/f2", os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        os.ftruncate(descriptor, chosen.choice([0, 10, 300000]))
        os.close(descriptor)
    except OSError:
        pass
"""


def racing_tree(tree: Path, outside: Path) -> None:
    for number in range(12):
        write(
            tree, {f"f{number}": b"inside", f"d{number}/secret": b"inside", f"d{number}/inner/deep/secret": b"inside"}
        )
        (tree / f"l{number}").symlink_to([outside / "dir", outside / "secret", outside, Path("..")][number % 4])
    os.mkfifo(tree / "p0")
    (tree / "m0").write_bytes(b"m" * 400_000)
    (tree / "m1").symlink_to(outside / "secret")


@pytest.fixture
def race(tree: Path, outside: Path) -> Iterator[Callable[[float], None]]:
    racing_tree(tree, outside)
    running: list[subprocess.Popen[bytes]] = []

    def start(seconds: float) -> None:
        for number in range(2):
            argv = [sys.executable, "-I", "-c", EXCHANGER, str(tree), str(outside), str(seconds), str(number)]
            running.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("portable", [False, True], ids=["openat2", "portable"])
def test_nothing_outside_is_read_while_others_exchange_entries(
    race: Callable[[float], None], tree: Path, outside: Path, tmp_path: Path, portable: bool
) -> None:
    """Captures for as long as the exchange goes on; every capture ends, and none holds a byte from outside."""
    if not portable and not _openat2.available():
        pytest.skip("this kernel has no openat2")
    store = CandidateStore(tmp_path / "store")
    race(SECONDS_EACH + 260)
    captures: list[Captured] = []

    def exchange_seen() -> bool:
        return len(captures) > 3 and len({captured.tree.digest for captured in captures}) > 1

    def work() -> None:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < SECONDS_EACH or (passed < 100 and not exchange_seen()):
            captures.append(capture(tree, store, portable=portable))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(SECONDS_EACH + 250)
    assert not worker.is_alive(), "a capture hangs"
    assert len(captures) > 3, "captures ended, none with an error"
    assert len({captured.tree.digest for captured in captures}) > 1, (
        "the exchange has to be seen, or this test shows nothing"
    )
    assert CANARY not in store_bytes(store)
    assert (outside / "secret").read_bytes() == (outside / "dir/secret").read_bytes() == CANARY, "and it was there"


# -- D05: archives -------------------------------------------------------------------------------------------------


def hostile_tar() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        link = tarfile.TarInfo("door")
        link.type, link.linkname = tarfile.SYMTYPE, "../outside"
        archive.addfile(link)
        for name in ("door/written", "../outside/climbed"):
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"evil"))
    return data.getvalue()


def test_archive_in_a_tree_is_bytes_and_nothing_else(
    tree: Path, outside: Path, store: CandidateStore, read: Any
) -> None:
    data = hostile_tar()
    (tree / "evil.tar").write_bytes(data)
    entry = read(tree).tree.get("evil.tar")
    assert entry is not None
    assert store.read(entry.digest, 10**6) == data
    assert sorted(os.listdir(outside)) == ["dir", "secret"]


# -- D06: bombs ----------------------------------------------------------------------------------------------------


def test_sparse_file_of_a_tebibyte_is_refused_at_once(tree: Path, read: Any, store: CandidateStore) -> None:
    os.truncate(tree / "honest.py", 2**40)
    began = time.monotonic()
    with pytest.raises(CandidateError, match=r"honest\.py has 1099511627776 bytes") as caught:
        read(tree)
    assert caught.value.reason is FailureReason.CANDIDATE_TOO_LARGE
    assert time.monotonic() - began < 20
    assert len(store_bytes(store)) < 10**5
    with (tree / "honest.py").open("rb") as file:
        file.seek(2**39)
        assert file.read(2**20) == bytes(2**20), "positive control: a plain reader would go on and on"


def test_sparse_files_within_the_size_of_one_count_together(tree: Path, read: Any) -> None:
    for number in range(6):
        (tree / f"s{number}").touch()
        os.truncate(tree / f"s{number}", 2 * 2**30 - 1)
    os.truncate(tree / "honest.py", 2 * 2**30 + 1)
    with pytest.raises(CandidateError, match=r"honest\.py has 2147483649 bytes"):
        read(tree)


def test_compressed_bomb_is_taken_as_the_bytes_it_has(tree: Path, read: Any) -> None:
    with zipfile.ZipFile(tree / "42.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50 * 2**20))
    assert read(tree).tree.total_bytes < 2**20
    with zipfile.ZipFile(tree / "42.zip") as archive:
        assert archive.infolist()[0].file_size == 50 * 2**20, "positive control: what unpacking it would cost"


# -- D07: special nodes, modes, attributes -------------------------------------------------------------------------


def test_special_nodes_are_left_out_without_waiting(tree: Path, read: Any) -> None:
    os.mkfifo(tree / "fifo")
    os.mkfifo(tree / "sub/task.json")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))
    expected = {"fifo", "sub/task.json", "socket"}
    for name, device in (("zero", os.makedev(1, 5)), ("tty", os.makedev(5, 0))):
        try:
            os.mknod(tree / name, 0o666 | stat.S_IFCHR, device)
            expected.add(name)
        except PermissionError:
            continue  # not allowed here, so nobody else could either
    began = time.monotonic()
    captured = read(tree)
    assert reasons(captured) == dict.fromkeys(expected, "a socket, FIFO or device")
    assert len(captured.tree.files) == 2
    assert time.monotonic() - began < 20


def test_modes_owners_and_attributes_are_not_carried(tree: Path, tmp_path: Path, read: Any, store: Any) -> None:
    (tree / "setuid").write_bytes(b"#!/bin/sh\n")
    (tree / "setuid").chmod(0o6755)
    (tree / "sticky").mkdir()
    (tree / "sticky").chmod(0o3777)
    (tree / "open").write_bytes(b"")
    (tree / "open").chmod(0o666)
    os.link(tree / "setuid", tree / "hard")
    with suppress(OSError):  # not every file system has them
        os.setxattr(tree / "setuid", "user.evil", b"1")
    captured = read(tree)
    modes = {entry.path: entry.mode for entry in captured.tree.entries}
    assert (modes["setuid"], modes["hard"], modes["open"], modes["sticky"]) == (0o755, 0o755, 0o644, 0o755)
    (target := tmp_path / "out").mkdir()
    store.materialize(captured.tree, target)
    for path in target.rglob("*"):
        assert stat.S_IMODE(path.lstat().st_mode) in (0o644, 0o755)
        assert os.listxattr(path) == []
        assert path.is_dir() or path.stat().st_nlink == 1
    shutil.copytree(tree, tmp_path / "copy")
    control = (tmp_path / "copy/setuid").stat().st_mode
    assert stat.S_IMODE(control) & stat.S_ISUID, "positive control: a plain copy carries the bit"


def test_hard_link_to_a_file_of_the_host_is_not_followed_later(
    tree: Path, outside: Path, read: Any, store: Any
) -> None:
    """Only who may write a file of the host can link it into a tree; what counts is that the copy stands alone."""
    os.link(tree / "honest.py", tree / "twin")
    captured = read(tree)
    (tree / "twin").write_bytes(b"changed after the capture")
    assert store.read(captured.tree.get("twin").digest, 100) == b"print()\n"
    assert (tree / "honest.py").read_bytes() != b"print()\n", "positive control: on disk they are one"


# -- D08: hostile names --------------------------------------------------------------------------------------------

NAMES = {
    b"\xff\xfe": "a name that is not UTF-8",
    b"\xed\xa0\x80": "a name that is not UTF-8",
    b"new\nline": "a name with control or invisible characters",
    b"\x1b[2Jclear": "a name with control or invisible characters",
    b"return\r": "a name with control or invisible characters",
    "\u202egpj.exe".encode(): "a name with control or invisible characters",
    "zero\u200bwidth".encode(): "a name with control or invisible characters",
    "line\u2028separator".encode(): "a name with control or invisible characters",
    b"\x7f": "a name with control or invisible characters",
    b"back\\slash": "a name with a backslash",
    b"..\\..\\etc": "a name with a backslash",
}


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_hostile_name_is_left_out_with_all_beneath_it(tree: Path, read: Any, name: bytes, kind: str) -> None:
    place = os.fsencode(tree / "sub") + b"/" + name
    if kind == "file":
        with open(place, "wb"):
            pass
    elif kind == "link":
        os.symlink(b"dir", place)
    else:
        os.mkdir(place)
        with open(place + b"/inner", "wb"):
            pass
    captured = read(tree)
    [left] = captured.left_out
    assert left.reason == NAMES[name]
    assert left.path.isprintable()
    assert left.path.encode()
    assert len(captured.tree.files) == 2
    assert Tree.from_json(captured.tree.as_json()) == captured.tree


def test_names_that_are_only_odd_are_kept(tree: Path, read: Any) -> None:
    odd = [
        "-rf",
        "--help",
        "$(id)",
        "`id`",
        "a;b",
        "a|b",
        '"',
        "'",
        "*",
        "?",
        " ",
        "  lead",
        "trail ",
        "...",
        "~",
        "#",
        "ü" * 100,
    ]
    write(tree, dict.fromkeys(odd, b""))
    captured = read(tree)
    assert not captured.left_out
    assert {entry.path for entry in captured.tree.files} >= set(odd)


# -- trees that their owner may not enter --------------------------------------------------------------------------


def as_nobody(work: Callable[[], str]) -> str:
    """What a child of ours says that has given up every privilege."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            said = work()
        except Exception as error:  # noqa: BLE001 — the parent says what was expected
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("portable", [False, True], ids=["openat2", "portable"])
def test_directories_that_may_not_be_entered_are_the_candidates_own_loss(portable: bool) -> None:
    """An operator who is not root is stopped by the modes an agent sets; root is not."""
    top = Path(tempfile.mkdtemp(prefix="sb-nobody-", dir="/tmp"))
    try:
        tree = write(top / "tree", {"a": b"1", "closed/b": b"2", "unreadable": b"3"})
        for path in (top, tree, *tree.rglob("*")):
            os.chown(path, 65534, 65534)
        (tree / "unreadable").chmod(0)
        (tree / "closed").chmod(0)

        def left_out() -> str:
            found = capture(tree, CandidateStore(top / "store"), portable=portable).left_out
            return ", ".join(item.path for item in found)

        assert left_out() == "", "positive control: root reads it all"
        shutil.rmtree(top / "store")
        assert as_nobody(left_out) == "closed, unreadable"
        with open_directory(tree) as root:
            tree.chmod(0)
            said = as_nobody(lambda: str(read_tree(root, CandidateStore(top / "store"), portable=portable)))
        assert said.startswith("CandidateError: "), said
        assert "the whole tree cannot be read (permission denied)" in said
    finally:
        shutil.rmtree(top)


# -- D11: the host writes where the agent's links point ------------------------------------------------------------


def test_written_tree_never_passes_through_a_link(tree: Path, outside: Path, tmp_path: Path, store: Any) -> None:
    forged = [TreeEntry.link("logs", "sub"), TreeEntry.file("logs/report.json", store.put(b"x"), 1)]
    with pytest.raises(ValueError, match="does not lie in a directory"):
        Tree.of(forged)
    (target := tmp_path / "target").mkdir()
    (target / "logs").symlink_to(outside)
    with pytest.raises(ValueError, match="not empty"):
        store.materialize(Tree.of([TreeEntry.directory("logs"), forged[1]]), target)
    assert sorted(os.listdir(outside)) == ["dir", "secret"]
    (target / "logs/report.json").write_bytes(b"x")
    assert sorted(os.listdir(outside)) == ["dir", "report.json", "secret"], "positive control: a plain write follows"


def test_root_that_is_a_link_is_the_operators_own(tree: Path, tmp_path: Path, store: CandidateStore) -> None:
    (tmp_path / "alias").symlink_to(tree)
    with open_directory(tmp_path / "alias") as root:
        assert read_tree(root, store).tree == capture(tree, store).tree


def test_the_kernel_can_exchange_here() -> None:
    """Without it the race tests would show nothing."""
    assert hasattr(ctypes.CDLL(None), "renameat2")
