"""Contents between head and nodes, by digest: pack files, stored contents, stored trees. Each side asks for what it
lacks, the other one streams it, and nothing is kept whose digest is not the one that was asked for.

    shipment = { kind digest { length bytes | zeros } 0 }        lengths and pieces bounded, kinds one letter

Zeros are sent as their number: a hole in a candidate's file is one here, on the way and where it arrives."""

from __future__ import annotations

import errno
import math
import os
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import SpooledTemporaryFile, TemporaryFile, mkdtemp
from typing import BinaryIO, NamedTuple, Protocol

from securebench import _fs, _json
from securebench._canonical import digest_bytes
from securebench._removal import remove_tree
from securebench.benchmark_pack import MAX_ASSET_BYTES, MAX_ASSET_ENTRIES
from securebench.candidates._blob_writing import STORED
from securebench.candidates.holes import runs
from securebench.candidates.store import MAX_TREE_JSON, CandidateStore
from securebench.candidates.tree import Tree, is_digest
from securebench.cluster.images import Images
from securebench.errors import IntegrityError
from securebench.resources import PackFile

PIECE = 512 * 1024
_HEAD = struct.Struct("<c32s")
_LENGTH = struct.Struct("<I")
_HOLE = 2**31  # in a length: so many zeros, which are not sent
_ZEROS = bytes(PIECE)
_SPOOLED = 4 * 2**20  # bytes on their way that need no disk
TOO_MUCH = "more came than there can be of what was asked for"
_FILE = struct.Struct("<cHQ")  # kind, length of its path, size


class Item(NamedTuple):
    """Something to ship: `p` a file or directory of the pack, `b` a stored content, `t` a stored tree, `i` an image."""

    kind: str
    digest: str


def items_from(value: object) -> tuple[Item, ...]:
    """What the other side listed. Raises IntegrityError."""
    if not isinstance(value, list):
        raise IntegrityError("not a list of contents")
    items = []
    for entry in value:
        if not isinstance(entry, list) or len(entry) != 2 or entry[0] not in ("p", "b", "t", "i"):
            raise IntegrityError("not a list of contents")
        if not isinstance(entry[1], str) or not is_digest(entry[1]):
            raise IntegrityError("contents are named by digest")
        items.append(Item(*entry))
    return tuple(items)


class Contents(Protocol):
    """What one side has."""

    def has(self, item: Item) -> bool: ...

    def pieces(self, item: Item) -> Iterator[bytes]:
        """Raises IntegrityError for what it has not."""
        ...

    def take(self, shipment: BinaryIO, asked: Iterable[Item], at_most: float = math.inf) -> None:
        """Keep what was asked for. Raises IntegrityError for anything else, and for more than `at_most` bytes."""
        ...

    def spool(self) -> SpooledTemporaryFile[bytes]:
        """A file for what is on its way, on the disk where it will lie."""
        ...


def missing(contents: Contents, items: Iterable[Item]) -> list[Item]:
    """What this side lacks, each once."""
    return [item for item in dict.fromkeys(items) if not contents.has(item)]


def shipment(contents: Contents, items: Iterable[Item]) -> Iterator[bytes]:
    """The stream that `take` reads."""
    for item in items:
        yield _HEAD.pack(item.kind.encode(), bytes.fromhex(item.digest.removeprefix("sha256:")))
        for piece in contents.pieces(item):
            for start in range(0, len(piece), PIECE):
                part = piece[start : start + PIECE]
                for run in runs(part):
                    yield _LENGTH.pack(_HOLE | run) if isinstance(run, int) else _LENGTH.pack(len(run)) + run
        yield _LENGTH.pack(0)


def sent_as(size: int, items: int) -> int:
    """The most bytes as which so many bytes of so many contents are sent."""
    return size + size // 512 + items * 64


def _unpacked(stream: BinaryIO, at_most: float) -> Iterator[tuple[Item, Iterator[bytes]]]:
    left = _Left(at_most)
    while head := stream.read(_HEAD.size):
        if len(head) < _HEAD.size:
            raise IntegrityError("a shipment ends too early")
        kind, digest = _HEAD.unpack(head)
        pieces = _pieces(stream, left)
        yield Item(kind.decode("latin-1"), f"sha256:{digest.hex()}"), pieces
        for _ in pieces:
            raise IntegrityError("a shipment was not read to its end")


@dataclass(slots=True)
class _Left:
    """Bytes that may still come; zeros count, although they cost nothing to send."""

    bytes: float

    def take(self, number: int) -> None:
        self.bytes -= number
        if self.bytes < 0:
            raise IntegrityError(TOO_MUCH)


def _pieces(stream: BinaryIO, left: _Left) -> Iterator[bytes]:
    while True:
        head = stream.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            raise IntegrityError("a shipment ends too early")
        (length,) = _LENGTH.unpack(head)
        if not length:
            return
        hole, length = bool(length & _HOLE), length & ~_HOLE
        left.take(length)
        if not 0 < length <= PIECE or (not hole and len(data := stream.read(length)) < length):
            raise IntegrityError("a shipment ends too early, or has a piece that is too large")
        yield _ZEROS[:length] if hole else data


@dataclass(frozen=True, slots=True)
class WithOneMore:
    """Contents and another one, which is made when it is asked for."""

    contents: Contents
    item: Item
    make: Callable[[], bytes]

    def has(self, item: Item) -> bool:
        return item == self.item or self.contents.has(item)

    def pieces(self, item: Item) -> Iterator[bytes]:
        if item == self.item:
            yield self.make()
        else:
            yield from self.contents.pieces(item)

    def take(self, shipment: BinaryIO, asked: Iterable[Item], at_most: float = math.inf) -> None:
        self.contents.take(shipment, asked, at_most)

    def spool(self) -> SpooledTemporaryFile[bytes]:
        return self.contents.spool()


class StoredContents:
    """A candidate store, and files of a pack: on the head those of the pack itself, on a node those that came."""

    def __init__(self, store: CandidateStore, files: Path | None = None, images: Images | None = None) -> None:
        self._store = store
        self.images = images or Images(())
        self._files = files  # where files of the pack are kept that came
        self._known: dict[str, PackFile] = {}

    def know(self, files: Iterable[PackFile]) -> None:
        """Files of a pack that lie here."""
        self._known.update((file.digest, file) for file in files)

    def kept(self, digest: str) -> Path:
        """The directory in which a file of the pack is kept that came, whatever it is called there."""
        if self._files is None:
            raise IntegrityError("no files of a pack are kept here")
        return self._files / digest.removeprefix("sha256:")

    def place(self, digest: str, path: PurePosixPath) -> Path:
        """The directory beneath which it lies at its own path, once it is laid out."""
        kept = self.kept(digest)
        return kept.with_name(f"{kept.name}-{digest_bytes(str(path).encode())[7:39]}")

    def lay_out(self, files: Iterable[PackFile]) -> None:
        """Put files that came to where they are looked for; it costs no more than their names."""
        for file in files:
            if not file.root.exists():
                with _made_once(file.root) as fresh:
                    (fresh / file.path).parent.mkdir(parents=True, exist_ok=True)
                    _link(self.kept(file.digest) / _INSIDE, fresh / file.path)

    def has(self, item: Item) -> bool:
        match item.kind:
            case "p":
                return item.digest in self._known or (self._files is not None and self.kept(item.digest).exists())
            case "t":
                return self._store.has_tree(item.digest)
            case "i":
                return self.images.has(item.digest)
        return self._store.has(item.digest)

    def pieces(self, item: Item) -> Iterator[bytes]:
        match item.kind:
            case "p" if item.digest in self._known:
                yield from _pack_pieces(self._known[item.digest])
            case "t":
                yield _json.dumps(self._store.load(item.digest).as_json()).encode()
            case "b":
                yield from self._store.chunks(item.digest)
            case "i":
                yield from self.images.pieces(item.digest)
            case _:
                raise IntegrityError(f"{item.digest} is not here")

    def spool(self) -> SpooledTemporaryFile[bytes]:
        place = self._store.directory
        place.mkdir(parents=True, exist_ok=True)
        return SpooledTemporaryFile(max_size=_SPOOLED, dir=str(place))

    def take(self, shipment: BinaryIO, asked: Iterable[Item], at_most: float = math.inf) -> None:
        wanted = set(asked)
        trees: list[tuple[str, bytes]] = []
        with self._store.batch() as batch:
            for item, pieces in _unpacked(shipment, at_most):
                if item not in wanted:
                    raise IntegrityError(f"{item.digest} was sent and not asked for")
                wanted.remove(item)
                match item.kind:
                    case "p":
                        self._take_files(item.digest, pieces)
                    case "t":
                        trees.append((item.digest, _joined(pieces, MAX_TREE_JSON)))
                    case "i":
                        self.images.take(item.digest, pieces)
                    case _:
                        if batch.put_pieces(pieces) != item.digest:
                            raise IntegrityError(f"{item.digest} arrived with other bytes")
        for digest, data in trees:
            self._take_tree(digest, data)
        if wanted:
            raise IntegrityError(f"{next(iter(wanted)).digest} was asked for and not sent")

    def _take_tree(self, digest: str, data: bytes) -> None:
        try:
            tree = Tree.from_json(_json.loads(data))
        except (ValueError, RecursionError) as error:
            raise IntegrityError(f"tree {digest} arrived broken: {error}") from error
        if tree.digest != digest:
            raise IntegrityError(f"tree {digest} arrived as another one")
        self._store.save(tree)

    def _take_files(self, digest: str, pieces: Iterator[bytes]) -> None:
        with _made_once(self.kept(digest)) as fresh:
            _write_files(fresh, digest, pieces)


@contextmanager
def _made_once(place: Path) -> Iterator[Path]:
    """A directory to fill that then is `place`. Two attempts may need the same at the same time; who is first wins."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(mkdtemp(prefix=".", dir=place.parent))
    fresh.chmod(0o755)
    try:
        yield fresh
        try:
            fresh.rename(place)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
    finally:
        remove_tree(fresh)


def _link(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=os.link)
    else:
        os.link(source, target)


def _write_files(fresh: Path, digest: str, pieces: Iterator[bytes]) -> None:
    """Raises IntegrityError unless they are what the digest says."""
    try:
        with _fs.open_directory(fresh) as base:
            for path, kind, size, data in _pack_entries(_Bytes(pieces)):
                _write_entry(base, fresh, path, kind, size, data)
            found = _fs.tree_digest(base, _INSIDE, MAX_ASSET_ENTRIES, MAX_ASSET_BYTES)
    except (ValueError, FileExistsError, NotADirectoryError) as error:
        raise IntegrityError(f"{digest}: a file of the pack arrived broken: {error}") from error
    if found != digest:
        raise IntegrityError(f"{digest}: a file of the pack arrived with other bytes")


def _write_entry(base: int, fresh: Path, path: PurePosixPath, kind: bytes, size: int, data: _Bytes) -> None:
    if kind == b"d":
        with _fs.make_directories(base, path):
            return
    with TemporaryFile(dir=fresh.parent) as file:
        _copy(data, size, file)
        STORED.add(file.fileno())
        _fs.write_new(base, path, file.fileno(), 0o555 if kind == b"x" else 0o444)


_INSIDE = PurePosixPath("files")


def _joined(pieces: Iterator[bytes], limit: int) -> bytes:
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > limit:
            raise IntegrityError("what arrived is too large")
    return bytes(data)


def _pack_pieces(file: PackFile) -> Iterator[bytes]:
    """A file or directory of the pack as entries; what is sent is compared with its digest where it arrives."""
    with _fs.open_directory(file.root) as base:
        for entry in _fs.walk(base, file.path, MAX_ASSET_ENTRIES):
            path = str(_INSIDE / entry.path).encode()
            kind = b"d" if entry.is_dir else b"x" if entry.executable else b"f"
            yield _FILE.pack(kind, len(path), 0 if entry.is_dir else entry.size) + path
            if not entry.is_dir:
                left = entry.size
                while left and (data := os.read(entry.descriptor, min(left, PIECE))):
                    left -= len(data)
                    yield data
                if left:
                    raise IntegrityError(f"{file.path} changed since the pack was loaded; start again")


class _Bytes:
    """Pieces read as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """At most so many bytes, fewer only at the end."""
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def _pack_entries(stream: _Bytes) -> Iterator[tuple[PurePosixPath, bytes, int, _Bytes]]:
    while head := stream.read(_FILE.size):
        if len(head) < _FILE.size:
            raise IntegrityError("a shipment ends too early")
        kind, length, size = _FILE.unpack(head)
        path = PurePosixPath(stream.read(length).decode())
        if path.is_absolute() or ".." in path.parts or path.parts[:1] != _INSIDE.parts:
            raise IntegrityError("a file of the pack has a path that leads elsewhere")
        yield path, kind, size, stream


def _copy(stream: _Bytes, size: int, file: BinaryIO) -> None:
    while size and (data := stream.read(min(size, PIECE))):
        file.write(data)
        size -= len(data)
    if size:
        raise IntegrityError("a shipment ends too early")
    file.flush()
    file.seek(0)
