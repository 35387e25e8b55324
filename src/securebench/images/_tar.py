"""A tar reader of our own: headers in, members out, every length capped before anything is read.

The standard library's `tarfile` reads extension headers of any size into memory and accepts numbers and names
that other readers see differently. This one reads what image builders write (v7, ustar, GNU long names, PAX) and
refuses the rest: sparse files, multi-volume archives, global headers that rename, unknown types. It touches no file
system; names are bytes, judged by whoever writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, Protocol

from securebench._fs import UnsafeEntry
from securebench.images.budget import MIB, Budget

BLOCK = 512
CHUNK = MIB
MAX_EXTENSION = MIB  # a PAX header or a GNU long name; real ones are a few hundred bytes
MAX_EXTENSIONS = 8  # before one member
MAX_TIME = 2**33  # seconds; the year 2242

_OCTAL = re.compile(rb"[ \0]*([0-7]*)[ \0]*")
_PAX_LENGTH = re.compile(rb"([1-9][0-9]{0,7}) ")
_PAX_TIME = re.compile(rb"(-?)([0-9]{1,20})(?:\.([0-9]{0,20}))?")
_SHADOWING = (b"path", b"linkpath", b"size")


class Kind(Enum):
    """What a member makes. SPECIAL is a device or a FIFO."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symbolic link"
    HARDLINK = "hard link"
    SPECIAL = "special file"


_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.SPECIAL,
    b"4": Kind.SPECIAL,
    b"5": Kind.DIRECTORY,
    b"6": Kind.SPECIAL,
}
_REFUSED = {b"S": "a sparse file", b"M": "part of a multi-volume archive", b"D": "an incremental dump"}


class Member(NamedTuple):
    """One entry as its header describes it."""

    name: bytes
    kind: Kind
    size: int = 0
    mode: int = 0o644
    mtime_ns: int = 0
    target: bytes = b""


class ByteStream(Protocol):
    """Where archive bytes come from."""

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, or fewer at the end of the stream."""
        ...

    def some(self, limit: int) -> bytes:
        """At least one and at most `limit` bytes; nothing at the end of the stream."""
        ...

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; returns how many there were."""
        ...


def show_name(name: bytes) -> str:
    """A member's name for a message: shortened, undecodable bytes visible."""
    text = name.decode("utf-8", "backslashreplace")
    return text if len(text) <= 200 else f"{text[:150]}…{text[-40:]}"


class TarReader:
    """Iterates over the members of one archive. Raises UnsafeEntry, whatever the bytes are."""

    def __init__(self, stream: ByteStream, budget: Budget) -> None:
        self._stream = stream
        self._budget = budget
        self._left = 0  # bytes of the current member not read yet
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        while (header := self._header()) is not None:
            member = self._member(header)
            if member is not None:
                self._enter(member.size)
                yield member
                self._leave(member.name)

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the current member, each once."""
        while self._left:
            chunk = self._stream.some(min(self._left, CHUNK))
            if not chunk:
                raise UnsafeEntry("the archive ends within this member")
            self._left -= len(chunk)
            yield chunk

    def _enter(self, size: int) -> None:
        self._left = size
        self._padding = -size % BLOCK

    def _leave(self, name: bytes) -> None:
        wanted = self._left + self._padding
        self._left = 0
        if wanted and self._stream.skip(wanted) != wanted:
            raise UnsafeEntry(f"the archive ends within member {show_name(name)}")

    def _header(self) -> bytes | None:
        block = self._stream.read(BLOCK)
        if not block:
            return None  # no end marker; common, and harmless because layers carry a digest
        if len(block) < BLOCK:
            raise UnsafeEntry("the archive ends within a header")
        if not any(block):
            following = self._stream.read(BLOCK)
            if any(following):
                raise UnsafeEntry("a header follows an empty block; the archive is damaged")
            return None
        self._budget.add_member()
        stored = _number(block[148:156], "checksum")
        if stored != sum(block) - sum(block[148:156]) + 8 * 32:
            raise UnsafeEntry("a header's checksum is wrong; this is not a tar archive, or it is damaged")
        return block

    def _member(self, block: bytes) -> Member | None:
        """The member that starts at this header; None for a header that stands alone (global, volume label)."""
        pax: dict[bytes, bytes] = {}
        long_name = long_target = b""
        for _ in range(MAX_EXTENSIONS):
            kind = block[156:157]
            if kind == b"x":
                pax.update(_pax(self._extension(block)))
            elif kind == b"L":
                long_name = self._extension(block).partition(b"\0")[0]
            elif kind == b"K":
                long_target = self._extension(block).partition(b"\0")[0]
            elif kind in (b"g", b"V"):
                if pax or long_name or long_target:
                    raise UnsafeEntry("an extension header that belongs to no member")
                self._standalone(block)
                return None
            else:
                return _build(block, pax, long_name, long_target)
            following = self._header()
            if following is None:
                raise UnsafeEntry("the archive ends after an extension header")
            block = following
        raise UnsafeEntry(f"more than {MAX_EXTENSIONS} extension headers before one member")

    def _extension(self, block: bytes) -> bytes:
        size = _number(block[124:136], "size")
        if size > MAX_EXTENSION:
            raise UnsafeEntry(f"an extension header of {size} bytes; at most {MAX_EXTENSION} are allowed")
        data = self._stream.read(size)
        padding = -size % BLOCK
        if len(data) < size or self._stream.skip(padding) != padding:
            raise UnsafeEntry("the archive ends within an extension header")
        return data

    def _standalone(self, block: bytes) -> None:
        data = self._extension(block)
        if block[156:157] == b"g" and any(key in _SHADOWING or _is_sparse(key) for key in _pax(data)):
            raise UnsafeEntry("a global header that changes names or sizes of all members")


def _build(block: bytes, pax: dict[bytes, bytes], long_name: bytes, long_target: bytes) -> Member:
    name, kind_byte = _text(block[0:100]), block[156:157]
    if block[257:263] == b"ustar\0" and block[345]:
        name = _text(block[345:500]) + b"/" + name
    name = pax.get(b"path") or long_name or name
    if kind_byte in _REFUSED or any(map(_is_sparse, pax)):
        raise UnsafeEntry(f"member {show_name(name)} is {_REFUSED.get(kind_byte, 'a sparse file')}; not supported")
    kind = _KINDS.get(kind_byte)
    if kind is None:
        raise UnsafeEntry(f"member {show_name(name)} has the unknown type {kind_byte!r}")
    if kind is Kind.FILE and name.endswith(b"/"):
        kind = Kind.DIRECTORY  # how v7 archives say it
    length = _decimal(pax[b"size"]) if pax.get(b"size") else _number(block[124:136], "size")
    return Member(
        name,
        kind,
        length if kind is Kind.FILE else 0,
        _number(block[100:108], "mode") & 0o7777,
        _pax_time(pax[b"mtime"]) if pax.get(b"mtime") else _time(block[136:148]),
        pax.get(b"linkpath") or long_target or _text(block[157:257]),
    )


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes, what: str) -> int:
    if field[0] == 0x80:  # GNU: big-endian binary for what octal digits cannot hold
        return int.from_bytes(field[1:], "big")
    match = _OCTAL.fullmatch(field)
    if match is None:
        raise UnsafeEntry(f"a header's {what} is not a number")
    return int(match[1] or b"0", 8)


def _time(field: bytes) -> int:
    if field[0] == 0xFF:  # before 1970
        return 0
    return min(_number(field, "time"), MAX_TIME) * 10**9


def _pax_time(value: bytes) -> int:
    match = _PAX_TIME.fullmatch(value)
    if match is None:
        raise UnsafeEntry("an extension header's time is not a number")
    if match[1]:
        return 0
    return min(int(match[2]), MAX_TIME) * 10**9 + int((match[3] or b"")[:9].ljust(9, b"0"))


def _decimal(value: bytes) -> int:
    if not value.isdigit() or len(value) > 20:
        raise UnsafeEntry("an extension header's size is not a number")
    return int(value)


def _is_sparse(key: bytes) -> bool:
    return key.startswith(b"GNU.sparse.")


def _pax(data: bytes) -> dict[bytes, bytes]:
    """Records `length key=value\\n`; a later one replaces an earlier one, as the standard says."""
    found: dict[bytes, bytes] = {}
    position = 0
    while position < len(data):
        match = _PAX_LENGTH.match(data, position, position + 10)
        end = position + int(match[1]) if match else 0
        if match is None or end > len(data) or end <= match.end() or data[end - 1] != 0x0A:
            raise UnsafeEntry("a damaged extension header")
        key, equals, value = data[match.end() : end - 1].partition(b"=")
        if not key or not equals:
            raise UnsafeEntry("an extension header without key and value")
        found[key] = value
        position = end
    return found
