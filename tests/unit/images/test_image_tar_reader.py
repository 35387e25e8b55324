from __future__ import annotations

import io
import tarfile

import pytest
from tests.unit.images.builders import BLOCK, archive, directory, file, hardlink, header, pax, special, symlink

from securebench._fs import TooLarge, UnsafeEntry
from securebench.images._tar import Kind, Member, TarReader
from securebench.images.budget import Budget, ImportLimits


class Memory:
    """A byte stream that notes the largest piece anybody asked it for."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self.largest = 0

    def read(self, size: int) -> bytes:
        self.largest = max(self.largest, size)
        return self._file.read(size)

    some = read

    def skip(self, size: int) -> int:
        return len(self._file.read(size))


def members(data: bytes, limits: ImportLimits | None = None) -> list[tuple[Member, bytes]]:
    reader = TarReader(Memory(data), Budget(limits or ImportLimits()))
    return [(member, b"".join(reader.chunks())) for member in reader]


def names(data: bytes) -> list[bytes]:
    return [member.name for member, _ in members(data)]


@pytest.mark.parametrize("style", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_every_common_format_are_read(style: int) -> None:
    out = io.BytesIO()
    deep = "d" * 90 + "/" + "f" * 60
    with tarfile.open(fileobj=out, mode="w", format=style) as tar:
        for name, kind, data in [("dir", tarfile.DIRTYPE, b""), (deep, tarfile.REGTYPE, b"x" * 1000)]:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.mtime = kind, len(data), 1234567890
            tar.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "t" * (90 if style == tarfile.USTAR_FORMAT else 300)
        tar.addfile(link)
    found = members(out.getvalue())
    assert [(member.name.rstrip(b"/"), member.kind) for member, _ in found] == [
        (b"dir", Kind.DIRECTORY),
        (deep.encode(), Kind.FILE),
        (b"link", Kind.SYMLINK),
    ]
    assert found[1][1] == b"x" * 1000
    assert found[1][0].mtime_ns == 1234567890 * 10**9
    assert found[2][0].target == link.linkname.encode()


def test_members_keep_kind_mode_and_target() -> None:
    data = archive(directory("d"), symlink("s", "t"), hardlink("h", "s"), special("c"), special("p", b"6"))
    kinds = [Kind.DIRECTORY, Kind.SYMLINK, Kind.HARDLINK, Kind.SPECIAL, Kind.SPECIAL]
    assert [member.kind for member, _ in members(data)] == kinds


def test_pax_overrides_name_size_and_time() -> None:
    record = pax({"path": b"long\xff", "size": b"3", "mtime": b"5.25", "SCHILY.xattr.user.x": b"\0\n="})
    member, data = members(archive(record, header(b"short", size=0), b"abc".ljust(BLOCK, b"\0")))[0]
    assert (member.name, member.size, member.mtime_ns, data) == (b"long\xff", 3, 5_250_000_000, b"abc")


def test_an_unread_member_is_passed_over() -> None:
    reader = TarReader(Memory(archive(file("a", b"x" * 5000), file("b"))), Budget(ImportLimits()))
    assert [member.name for member in reader] == [b"a", b"b"]


def test_names_before_the_ustar_standard_and_v7_directories_are_read() -> None:
    assert names(archive(header(b"plain", b"\0", magic=b""))) == [b"plain"]
    assert members(archive(header(b"dir/", b"\0", magic=b"")))[0][0].kind is Kind.DIRECTORY


def test_a_size_beyond_octal_is_read_as_binary() -> None:
    reader = TarReader(Memory(header(b"big", size=2**40)), Budget(ImportLimits()))
    assert next(iter(reader)).size == 2**40


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"x" * 100, "ends within a header"),
        (b"x" * BLOCK, "not a number"),
        (header(b"a", checksum=1), "checksum"),
        (bytes(BLOCK) + file("a"), "empty block"),
        (header(b"a", size=600) + bytes(BLOCK), "ends within"),
        (archive(header(b"a", b"S")), "sparse"),
        (archive(pax({"GNU.sparse.major": b"1"}), file("a")), "sparse"),
        (archive(header(b"a", b"M")), "multi-volume"),
        (archive(header(b"a", b"!")), "unknown type"),
        (archive(pax({"path": b"evil"}, b"g"), file("a")), "global header"),
        (archive(pax({"path": b"b"}), pax({"comment": b"c"}, b"g"), file("a")), "belongs to no member"),
        (archive(*[pax({"path": b"b"})] * 9, file("a")), "extension headers"),
        (pax({"path": b"b"}), "ends after an extension"),
        (archive(header(b"x", b"x", size=10), b"99 path=b\n".ljust(BLOCK, b"\0")), "damaged extension"),
        (archive(header(b"x", b"x", size=10), b"aaaaaaaaaa".ljust(BLOCK, b"\0")), "damaged extension"),
        (archive(header(b"x", b"x", size=7), b"7 path\n".ljust(BLOCK, b"\0")), "without key and value"),
        (archive(pax({"size": b"-1"}), file("a")), "not a number"),
        (archive(pax({"size": b"1_0"}), file("a")), "not a number"),
        (archive(pax({"mtime": b"nan"}), file("a")), "not a number"),
    ],
)
def test_damaged_or_ambiguous_archives_are_refused(data: bytes, rule: str) -> None:
    with pytest.raises(UnsafeEntry, match=rule):
        members(data)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_huge_extension_header_is_refused_before_it_is_read(kind: bytes) -> None:
    stream = Memory(header(b"x", kind, size=2**40))
    with pytest.raises(UnsafeEntry, match="at most"):
        list(TarReader(stream, Budget(ImportLimits())))
    assert stream.largest == BLOCK


def test_the_number_of_headers_is_bounded() -> None:
    with pytest.raises(TooLarge, match="members"):
        members(archive(*[file("a")] * 11), ImportLimits(members=10))


def test_tarfile_reads_a_huge_extension_header_into_memory() -> None:
    """Why the reader is our own: the standard library asks for all of it at once."""

    class Recorder(io.RawIOBase):
        largest = 0
        first = True

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            Recorder.largest = max(Recorder.largest, size)
            data = header(b"x", b"x", size=2**28) if self.first else b""
            self.first = False
            return data

        def tell(self) -> int:
            return 0

        def seek(self, offset: int, whence: int = 0) -> int:
            return offset

    with pytest.raises(tarfile.TarError):
        tarfile.TarFile(fileobj=Recorder())
    assert Recorder.largest >= 2**28
