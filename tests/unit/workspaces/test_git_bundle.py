"""One commit of a bundle comes out exactly; whatever else a bundle holds, nothing does."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zlib
from pathlib import Path, PurePosixPath

import pytest
from tests.unit.workspaces.git_cases import git, need_git, write_files

from securebench.errors import PackError
from securebench.workspaces._git.bundle import Bundle, BundleFile, open_bundle
from securebench.workspaces._git.delta import apply_delta
from securebench.workspaces._git.objects import GITLINK, LINK, TREE, TreeItem, base_commit, encode_tree
from securebench.workspaces._git.pack_reader import PackLimits
from securebench.workspaces._git.pack_writer import PackWriter
from securebench.workspaces.limits import MaterializationLimits, WorkspaceBudget
from securebench.workspaces.repositories import unpack_bundle

LONG = "".join(f"line {number}\n" for number in range(500))
HEADER = b"# v2 git bundle\n" + b"0" * 40 + b" refs/heads/main\n\n"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A repository with several commits, tags and deltas, and the ids of its commits."""
    need_git()
    directory = tmp_path_factory.mktemp("history")
    git(directory, "init", "-q")
    ids = []
    for number in range(6):
        write_files(directory, {"long.txt": LONG.replace("line 7\n", f"line {number}!\n"), f"d/{number}": f"{number}"})
        if number == 2:
            write_files(directory, {"run*": "#!/bin/sh\n", "link": "-> d/0", "ümlaut": "u"})
        git(directory, "add", "-A")
        git(directory, "commit", "-q", "-m", f"commit {number}")
        ids.append(git(directory, "rev-parse", "HEAD").strip().decode())
    git(directory, "tag", "-a", "v1", "-m", "a tag")
    return directory, ids


def bundle_of(history: Path, target: Path, *words: str) -> Path:
    git(history, "bundle", "create", "-q", str(target), *(words or ("--all",)))
    return target


def as_dict(files: list[BundleFile]) -> dict[str, tuple[bytes, bool, bool]]:
    return {file.path.decode(): (file.data, file.is_link, file.executable) for file in files}


@pytest.mark.parametrize("number", range(6))
def test_every_commit_comes_out_as_git_has_it(history: tuple[Path, list[str]], tmp_path: Path, number: int) -> None:
    directory, ids = history
    found = as_dict(list(open_bundle(bundle_of(directory, tmp_path / "b")).files(ids[number])))
    lines = git(directory, "ls-tree", "-r", "-z", ids[number]).split(b"\0")[:-1]
    expected = {}
    for line in lines:
        described, _, name = line.partition(b"\t")
        mode, _, blob = described.decode().split()
        expected[name.decode()] = (git(directory, "cat-file", "blob", blob), mode == "120000", mode == "100755")
    assert found == expected


def test_deltas_that_name_their_base_by_id_are_read(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    directory, ids = history
    objects = b"".join(
        line.split()[0] + b"\n" for line in git(directory, "rev-list", "--objects", "--all").splitlines()
    )
    pack = git(directory, "pack-objects", "-q", "--stdout", data=objects)
    assert any((byte >> 4) & 7 == 7 for byte in pack), "no delta of that kind"
    (tmp_path / "b").write_bytes(HEADER + pack)
    assert as_dict(list(open_bundle(tmp_path / "b").files(ids[0])))["long.txt"][0].startswith(b"line 0\n")


def test_an_abbreviated_id_finds_its_commit(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    directory, ids = history
    bundle = open_bundle(bundle_of(directory, tmp_path / "b"))
    assert as_dict(list(bundle.files(ids[1][:12]))) == as_dict(list(bundle.files(ids[1])))


@pytest.mark.parametrize("commit", ["main", "HEAD", "f" * 40, "abc", "", "../x", "F" * 40, "v1"])
def test_what_is_no_commit_of_it_is_refused(history: tuple[Path, list[str]], tmp_path: Path, commit: str) -> None:
    bundle = open_bundle(bundle_of(history[0], tmp_path / "b"))
    with pytest.raises(ValueError, match=r"base_commit|does not hold"):
        list(bundle.files(commit))


def test_a_tree_or_tag_is_no_commit(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    bundle = open_bundle(bundle_of(history[0], tmp_path / "b"))
    for name in ("HEAD^{tree}", "v1"):
        with pytest.raises(ValueError, match="does not hold"):
            list(bundle.files(git(history[0], "rev-parse", name).strip().decode()))


def test_a_bundle_that_is_not_complete_is_refused(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not hold"):
        open_bundle(bundle_of(history[0], tmp_path / "b", "HEAD~2..HEAD"))


def test_every_truncation_and_many_flips_are_refused_or_harmless(
    history: tuple[Path, list[str]], tmp_path: Path
) -> None:
    data = bundle_of(history[0], tmp_path / "b").read_bytes()
    for length in range(0, len(data) - 1, 37):
        with pytest.raises(ValueError, match=r"is|has|holds|ends|builds"):
            Bundle(memoryview(data[:length]), PackLimits())
    start = data.index(b"PACK")
    for at in range(start + 12, len(data) - 20, 41):
        body = bytearray(data[start:-20])
        body[at - start] ^= 0x55
        damaged = data[:start] + bytes(body) + hashlib.sha1(body).digest()
        try:
            list(Bundle(memoryview(damaged), PackLimits()).files(history[1][3]))
        except ValueError:
            continue  # anything but ValueError is a defect


def packed(*objects: tuple[bytes, bytes]) -> tuple[bytes, list[str]]:
    """A bundle of exactly these objects, and their ids."""
    file = io.BytesIO()
    writer = PackWriter(file)
    ids = [writer.add(kind, data).hex() for kind, data in objects]
    writer.finish()
    return HEADER + file.getvalue(), ids


def commit_of(*items: TreeItem, blobs: tuple[bytes, ...] = (b"x",)) -> tuple[bytes, str]:
    tree = encode_tree(items)
    _, (tree_id,) = packed((b"tree", tree))
    commit = base_commit(bytes.fromhex(tree_id))
    data, ids = packed(*((b"blob", blob) for blob in blobs), (b"tree", tree), (b"commit", commit))
    return data, ids[-1]


BLOB = bytes.fromhex(packed((b"blob", b"x"))[1][0])
ETC = bytes.fromhex(packed((b"blob", b"/etc"))[1][0])
HOSTILE = {
    "parent": TreeItem(b"..", 0o100644, BLOB),
    "dot": TreeItem(b".", 0o100644, BLOB),
    "slash": TreeItem(b"a/../../x", 0o100644, BLOB),
    "absolute": TreeItem(b"/etc/x", 0o100644, BLOB),
    "git": TreeItem(b".git", 0o100644, BLOB),
    "git in capitals": TreeItem(b".GiT", 0o100644, BLOB),
    "newline": TreeItem(b"a\nb", 0o100644, BLOB),
    "not UTF-8": TreeItem(b"\xff", 0o100644, BLOB),
    "empty": TreeItem(b"", 0o100644, BLOB),
    "missing": TreeItem(b"a", 0o100644, b"\1" * 20),
    "a blob as tree": TreeItem(b"a", TREE, BLOB),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_tree_is_refused_and_writes_nothing_outside(tmp_path: Path, case: str) -> None:
    data, commit = commit_of(HOSTILE[case])
    (tmp_path / "b").write_bytes(data)
    (tmp_path / "out").mkdir()
    with pytest.raises(PackError, match="asset the-bundle"):
        unpack(tmp_path, commit)
    assert sorted(os.listdir(tmp_path)) == ["b", "out"]
    assert not list((tmp_path / "out").rglob("*"))


def unpack(tmp_path: Path, commit: str, limits: MaterializationLimits | None = None) -> None:
    budget = WorkspaceBudget(limits or MaterializationLimits())
    unpack_bundle(tmp_path / "b", PurePosixPath("the-bundle"), commit, tmp_path / "out", budget)


def test_positive_control_a_plain_tree_is_written(tmp_path: Path) -> None:
    data, commit = commit_of(TreeItem(b"a", 0o100755, BLOB), TreeItem(b"sub", GITLINK, b"\1" * 20))
    (tmp_path / "b").write_bytes(data)
    (tmp_path / "out").mkdir()
    unpack(tmp_path, commit)
    assert (tmp_path / "out" / "a").read_bytes() == b"x"
    assert (tmp_path / "out" / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out" / "sub").is_dir(), "a submodule is an empty directory"


@pytest.mark.parametrize("order", [("a", "a"), ("a", "A")])
def test_nothing_is_written_through_a_link_of_the_same_tree(tmp_path: Path, order: tuple[str, str]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = packed((b"blob", str(outside).encode()))[1][0]
    inner = encode_tree([TreeItem(b"x", 0o100644, BLOB)])
    _, (inner_id,) = packed((b"tree", inner))
    link, directory = order
    tree = b"".join(
        [
            b"120000 %s\0" % link.encode() + bytes.fromhex(target),
            b"40000 %s\0" % directory.encode() + bytes.fromhex(inner_id),
        ]
    )
    _, (tree_id,) = packed((b"tree", tree))
    blobs = [(b"blob", str(outside).encode()), (b"blob", b"x")]
    commit = (b"commit", base_commit(bytes.fromhex(tree_id)))
    data, ids = packed(*blobs, (b"tree", inner), (b"tree", tree), commit)
    (tmp_path / "b").write_bytes(data)
    (tmp_path / "out").mkdir()
    if link == directory:
        with pytest.raises(PackError):
            unpack(tmp_path, ids[-1])
    else:
        unpack(tmp_path, ids[-1])
        assert (tmp_path / "out" / "A" / "x").read_bytes() == b"x"
    assert not list(outside.iterdir())


def test_links_are_kept_as_text(tmp_path: Path) -> None:
    data, commit = commit_of(TreeItem(b"l", LINK, ETC), blobs=(b"/etc",))
    (tmp_path / "b").write_bytes(data)
    (tmp_path / "out").mkdir()
    unpack(tmp_path, commit)
    assert os.readlink(tmp_path / "out" / "l") == "/etc"


def test_a_bundle_over_the_workspace_budget_is_refused(tmp_path: Path) -> None:
    data, commit = commit_of(TreeItem(b"a", 0o100644, BLOB), TreeItem(b"b", 0o100644, BLOB))
    (tmp_path / "b").write_bytes(data)
    (tmp_path / "out").mkdir()
    with pytest.raises(PackError, match="limit of a workspace"):
        unpack(tmp_path, commit, MaterializationLimits(files=1))


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"# v2 git bundle\n", b"# v3 git bundle\n@object-format=sha256\n\nPACK"]
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "b").write_bytes(data)
    (tmp_path / "out").mkdir()
    with pytest.raises(PackError, match="asset the-bundle"):
        unpack(tmp_path, "a" * 40)


def raw_pack(count: int, body: bytes) -> bytes:
    data = struct.pack(">4sII", b"PACK", 2, count) + body
    return HEADER + data + hashlib.sha1(data).digest()


def size_header(kind: int, size: int) -> bytes:
    first, size = (kind << 4) | (size & 15), size >> 4
    out = bytearray()
    while size:
        out.append(first | 128)
        first, size = size & 127, size >> 7
    return bytes(out) + bytes([first])


BOMBS = {
    "more objects than allowed": (raw_pack(2_000_000, b""), "at most"),
    "an object that claims to be huge": (raw_pack(1, size_header(3, 1 << 40) + zlib.compress(b"")), "more bytes"),
    "an object longer than it says": (raw_pack(1, size_header(3, 10) + zlib.compress(b"x" * 10**7)), "longer"),
    "an object shorter than it says": (raw_pack(1, size_header(3, 10) + zlib.compress(b"x")), "shorter"),
    "a size without end": (raw_pack(1, b"\xff" * 40), "damaged|more bytes"),
    "a delta on nothing": (raw_pack(1, size_header(6, 3) + b"\x05" + zlib.compress(b"abc")), "builds on nothing"),
    "a delta on itself by id": (raw_pack(1, size_header(7, 3) + b"\1" * 20 + zlib.compress(b"abc")), "complete"),
    "bytes after the last object": (raw_pack(1, size_header(3, 1) + zlib.compress(b"x") + b"tail"), "after the last"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_bombs_and_lies_are_refused(case: str) -> None:
    data, complaint = BOMBS[case]
    with pytest.raises(ValueError, match=complaint):
        Bundle(memoryview(data), PackLimits())


def test_small_deltas_that_ask_for_much_work_are_refused() -> None:
    base = b"x" * 60_000
    size = b"\xe0\xd4\x03"
    delta = size + size + b"\xb0" + struct.pack("<H", 60_000)
    body = size_header(3, len(base)) + zlib.compress(base)
    last = 12
    for _ in range(50):
        offset = 12 + len(body)
        distance = offset - last
        encoded = bytes([distance & 127]) if distance < 128 else bytes([((distance >> 7) - 1) | 128, distance & 127])
        body += size_header(6, len(delta)) + encoded + zlib.compress(delta)
        last = offset
    data = raw_pack(51, body)
    Bundle(memoryview(data), PackLimits())  # the positive control
    with pytest.raises(ValueError, match="more work"):
        Bundle(memoryview(data), PackLimits(work_bytes=1_000_000))
    with pytest.raises(ValueError, match="chain"):
        Bundle(memoryview(data), PackLimits(depth=0))


@pytest.mark.parametrize(
    "delta",
    [b"", b"\x01", b"\x01\x05\x91\x00\xff", b"\x01\x01\x00", b"\x02\x01\x01x", b"\x01\x01\x01", b"\x01\x00\x01x"],
)
def test_damaged_deltas_are_refused(delta: bytes) -> None:
    with pytest.raises(ValueError, match="delta"):
        apply_delta(b"a", delta, 100)


def test_a_delta_over_its_limit_is_refused_before_it_is_made() -> None:
    with pytest.raises(ValueError, match="at most"):
        apply_delta(b"a", b"\x01\xff\xff\xff\x7f", 100)
