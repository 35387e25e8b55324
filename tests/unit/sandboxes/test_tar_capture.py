"""Hostile archives: nothing outside, nothing special, nothing without a bound."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from securebench.errors import CandidateError, FailureReason, SandboxError
from securebench.sandboxes._docker.tar_capture import (
    CaptureLimits,
    Descriptor,
    LeftOut,
    capture,
    link_stays_beneath,
    name_problem,
)
from securebench.sandboxes._docker.tar_seed import check_seed, write_seed

LIMITS = CaptureLimits(bytes=1 << 20, entries=100, depth=8)


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", target: str = "", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    header = tarfile.TarInfo(name)
    header.type, header.linkname, header.mode, header.size = kind, target, mode, len(data)
    return header, data


def _archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as archive:
        for header, data in members:
            archive.addfile(header, io.BytesIO(data))
    return stream.getvalue()


Take = Callable[..., tuple[LeftOut, ...]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "staging"
    made.mkdir()
    (tmp_path / "canary").write_text("untouched")
    return made


@pytest.fixture
def take(root: Path) -> Iterator[Take]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    def run(data: bytes, limits: CaptureLimits = LIMITS) -> tuple[LeftOut, ...]:
        file = os.memfd_create("archive")
        try:
            os.write(file, data)
            os.lseek(file, 0, os.SEEK_SET)
            return capture(Descriptor(file), descriptor, limits)
        finally:
            os.close(file)

    yield run
    os.close(descriptor)


def test_files_directories_and_links_beneath_are_kept(take: Take, root: Path) -> None:
    left = take(
        _archive(
            _member("./", tarfile.DIRTYPE),
            _member("d/", tarfile.DIRTYPE),
            _member("d/f", data=b"data", mode=0o600),
            _member("run", data=b"#!", mode=0o755),
            _member("d/up", tarfile.SYMTYPE, target="../run"),
            _member("hard", tarfile.LNKTYPE, target="d/f"),
        )
    )
    assert left == ()
    assert (root / "d" / "f").read_bytes() == b"data"
    assert os.readlink(root / "d" / "up") == "../run"
    assert (root / "hard").read_bytes() == b"data"
    assert (root / "hard").stat().st_nlink == 1
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("d", "d/f", "run")] == [0o755, 0o644, 0o755]


@pytest.mark.parametrize("name", ["../canary", "/etc/x", "d/../../canary"])
def test_name_that_leads_outside_is_not_an_engines(take: Take, root: Path, name: str) -> None:
    with pytest.raises(SandboxError):
        take(_archive(_member(name, data=b"x")))
    assert (root.parent / "canary").read_text() == "untouched"
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../canary", "a/../../x", "a/..", "", "x" * 2000])
def test_link_that_could_lead_outside_is_left_out(take: Take, root: Path, target: str) -> None:
    (left,) = take(_archive(_member("link", tarfile.SYMTYPE, target=target)))
    assert left == LeftOut("link", "a link that leads outside")
    assert list(root.iterdir()) == []


def test_no_chain_of_kept_links_leads_outside() -> None:
    """Kept: climbs only at its beginning. The chain e -> root, then e/.. would otherwise step above the root."""
    assert link_stays_beneath((b"a", b"b", b"e"), b"../..")
    assert not link_stays_beneath((b"l",), b"a/b/e/..")
    assert not link_stays_beneath((b"a", b"b", b"e"), b"../../..")


def test_file_cannot_be_written_through_a_captured_link(take: Take, root: Path) -> None:
    """tarfile's own extraction follows it: the positive control."""
    data = _archive(
        _member("inner", tarfile.DIRTYPE),
        _member("d", tarfile.SYMTYPE, target="inner"),
        _member("d/f", data=b"through"),
    )
    with pytest.raises(SandboxError):
        take(data)
    assert not (root / "inner" / "f").exists()
    control = root.parent / "control"
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(control, filter="fully_trusted")
    assert (control / "inner" / "f").read_bytes() == b"through"


def test_duplicate_member_is_not_an_engines(take: Take) -> None:
    with pytest.raises(SandboxError, match="twice"):
        take(_archive(_member("a", data=b"1"), _member("a", data=b"2")))


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_special_node_is_left_out(take: Take, root: Path, kind: bytes) -> None:
    assert take(_archive(_member("node", kind))) == (LeftOut("node", "a device or FIFO"),)
    assert list(root.iterdir()) == []


def test_setuid_and_attributes_are_not_kept(take: Take, root: Path) -> None:
    header, data = _member("su", data=b"x", mode=0o6755)
    header.pax_headers = {"SCHILY.xattr.user.k": "v", "SCHILY.xattr.security.capability": "v"}
    take(_archive((header, data)))
    assert stat.S_IMODE((root / "su").stat().st_mode) == 0o755
    assert os.listxattr(root / "su") == []


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\udcff", "tab\t", "\u2028", "\x7f"])
def test_hostile_name_is_left_out_and_listed_harmlessly(take: Take, root: Path, name: str) -> None:
    (left,) = take(_archive(_member(name, data=b"x")))
    assert left.path.isprintable()
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("name", ["-rf", " ", "ü", "…", "a\\b", "x" * 255, ".git", "CON"])
def test_odd_but_harmless_name_is_kept(take: Take, root: Path, name: str) -> None:
    assert take(_archive(_member(name, data=b"x"))) == ()
    assert (root / name).read_bytes() == b"x"


def test_what_lies_beneath_something_left_out_is_left_out_with_it(take: Take, root: Path) -> None:
    left = take(_archive(_member("bad\n", tarfile.DIRTYPE), _member("bad\n/f", data=b"x"), _member("ok", data=b"y")))
    assert [entry.path for entry in left] == ["bad\\n"]
    assert [path.name for path in root.iterdir()] == ["ok"]


def test_hard_link_to_what_was_left_out_is_left_out(take: Take) -> None:
    left = take(
        _archive(
            _member("p", tarfile.FIFOTYPE),
            _member("h", tarfile.LNKTYPE, target="p"),
            _member("o", tarfile.LNKTYPE, target="nowhere"),
        )
    )
    assert [entry.path for entry in left] == ["p", "h", "o"]


@pytest.mark.parametrize(
    "members,limits",
    [
        ([_member("a", data=b"x" * 1001)], CaptureLimits(bytes=1000)),
        ([_member("a", data=b"x" * 600), _member("b", tarfile.LNKTYPE, target="a")], CaptureLimits(bytes=1000)),
        ([_member(str(n)) for n in range(6)], CaptureLimits(bytes=1000, entries=5)),
        ([_member("/".join("d" * n), tarfile.DIRTYPE) for n in range(1, 6)], CaptureLimits(bytes=1000, depth=4)),
        (
            [_member("n" * 200, tarfile.DIRTYPE), _member("n" * 200 + "/" + "m" * 200)],
            CaptureLimits(bytes=10, path_bytes=300),
        ),
    ],
    ids=["bytes", "hard links", "entries", "depth", "path"],
)
def test_exceeded_budget_is_the_candidates_failure(
    take: Take, members: list[tuple[tarfile.TarInfo, bytes]], limits: CaptureLimits
) -> None:
    with pytest.raises(CandidateError) as failed:
        take(_archive(*members), limits)
    assert failed.value.reason is FailureReason.CANDIDATE_TOO_LARGE


def test_a_lying_size_is_refused_before_anything_is_read(take: Take) -> None:
    header, _ = _member("a")
    header.size = 1 << 50
    with pytest.raises(CandidateError):
        take(header.tobuf(tarfile.GNU_FORMAT))


def test_zeros_cost_no_disk(take: Take, root: Path) -> None:
    take(_archive(_member("sparse", data=bytes(900_000) + b"end")))
    assert (root / "sparse").stat().st_size == 900_003
    assert (root / "sparse").read_bytes().rstrip(b"\0").endswith(b"end")


@pytest.mark.parametrize("cut", [1, 100, 511, 512, 600, 1024, 1500])
def test_truncated_stream_is_ours_to_explain(take: Take, cut: int) -> None:
    data = _archive(_member("a", data=b"x" * 1000), _member("b", data=b"y"))
    if cut == 512 or cut == 1536:
        cut += 1
    with pytest.raises(SandboxError):
        take(data[:cut])


def test_garbage_is_ours_to_explain(take: Take) -> None:
    with pytest.raises(SandboxError):
        take(os.urandom(4096))


def test_names_are_judged() -> None:
    assert name_problem(b"plain") is None
    assert name_problem(b"x" * 256) == "a name that is too long"


def test_seed_survives_the_round_trip(take: Take, root: Path, tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    (seed / "d").mkdir(parents=True)
    (seed / "d" / ("n" * 200)).write_bytes(b"\xff" * 5000)
    (seed / "run").write_bytes(b"#!")
    (seed / "run").chmod(0o755)
    stream = io.BytesIO()
    write_seed(stream, seed, 65534)
    assert take(stream.getvalue()) == ()
    assert (root / "d" / ("n" * 200)).read_bytes() == b"\xff" * 5000
    assert (root / "run").stat().st_mode & 0o111


def test_links_of_a_seed_are_text_but_for_those_the_daemon_refuses(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    links = {"file": "/etc/passwd", "d/folder": "/etc", "d/up": "../file", "d/out": "../../beside", "out": ".."}
    for name, text in links.items():
        (tmp_path / name).symlink_to(text)
    stream = io.BytesIO()
    write_seed(stream, tmp_path, 0)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as archive:
        found = {member.name: member.linkname for member in archive if member.issym()}
    assert found == {name: text for name, text in links.items() if not name.endswith("out")}


def test_seed_with_anything_else_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(SandboxError, match="regular file"):
        write_seed(io.BytesIO(), tmp_path, 0)
    with pytest.raises(SandboxError, match="regular file"):
        check_seed(tmp_path)
