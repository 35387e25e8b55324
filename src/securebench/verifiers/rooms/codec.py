"""Typed plain data to bytes and back. The same text runs on the host, in the test sandbox and in the worker.

Nothing is unpickled, evaluated or looked up but the names of built-in types. Decoding is total: any bytes give a value
or `CodecError`, within limits on size, depth, items and digits. What is not plain data stays where it is and crosses as
an `Opaque` number; exceptions cross as names, a message and plain arguments."""

from __future__ import annotations

import builtins
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any, Callable, Optional  # noqa: UP035 — Python 3.8 runs this

    Keep = Callable[[Any], Any]
    """Turns what is not plain into an `Opaque`, a `Thrown` or other plain data; raises CodecError when it cannot."""
    Find = Callable[[Any], Any]
    """Turns an `Opaque`, `Thrown` or `ThrownType` that arrived into an object; raises CodecError when there is none."""

MAX_FRAME = 16 * 1024 * 1024
MAX_DEPTH = 120
MAX_ITEMS = 1000000
MAX_INTEGER = 65536  # bytes of one integer: about 157,000 digits

_LENGTH = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")
_FLOAT = struct.Struct(">d")
_COMPLEX = struct.Struct(">dd")

_SINGLES = {ord("N"): None, ord("T"): True, ord("F"): False, ord("."): Ellipsis, ord("!"): NotImplemented}
_INTEGER, _TEXT = b"IS"
_TYPES = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
_TYPE_NAMES = {id(value): name for name, value in _TYPES.items()}


class CodecError(ValueError):
    """These bytes, or this value, cannot cross."""


class Opaque:
    """Something that stays in its room. `side` is `w` for the worker's and `t` for the tests' objects."""

    __slots__ = ("kind", "names", "number", "side")

    def __init__(self, side: str, number: int, kind: str, names: tuple[str, ...] = ()) -> None:
        self.side, self.number, self.kind, self.names = side, number, kind, names

    def key(self) -> tuple[Any, ...]:
        return (self.side, self.number, self.kind, self.names)


class Thrown:
    """An exception as data: the names of its class and that class's bases, its message, its arguments."""

    __slots__ = ("arguments", "message", "names")

    def __init__(self, names: tuple[str, ...], message: str, arguments: Optional[tuple[Any, ...]] = None) -> None:  # noqa: UP045
        self.names, self.message, self.arguments = names, message, arguments

    def key(self) -> tuple[Any, ...]:
        return (self.names, self.message, self.arguments)


class ThrownType:
    """An exception class that is not built in, as the names of its bases."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names


def refuse(value: Any) -> Any:
    """The `Keep` of a side that keeps nothing."""
    raise CodecError("a value of type " + type(value).__name__ + " cannot cross")


def as_data(value: Any) -> Any:
    """The `Find` of a side that only looks."""
    return value


def class_names(cls: type) -> tuple[str, ...]:
    """A class and its bases, as names."""
    return tuple(str(base.__name__)[:200] for base in type.__dict__["__mro__"].__get__(cls)[:20])


def encode(value: Any, keep: Keep = refuse) -> bytes:
    """The bytes of a value. Raises CodecError. Subclasses of plain types are sent as what they are made of."""
    encoder = _Encoder(keep)
    try:
        encoder.add(value, 0)
    except RecursionError:
        raise CodecError("nested too deeply") from None
    data = b"".join(encoder.parts)
    if len(data) > MAX_FRAME:
        raise CodecError("larger than a frame may be")
    return data


def _sized(tag: bytes, data: bytes) -> bytes:
    return tag + _LENGTH.pack(len(data)) + data


def _integer(value: int) -> bytes:
    length = int.bit_length(value) // 8 + 1
    if length > MAX_INTEGER:
        raise CodecError("an integer has too many digits")
    return b"I" + _LENGTH.pack(length) + int.to_bytes(value, length, "big", signed=True)


def _text(value: str) -> bytes:
    return _sized(b"S", str.encode(value, "utf-8", "surrogatepass"))


def _leaf(value: Any, cls: type) -> Optional[bytes]:  # noqa: UP045
    """A value that holds no others; None for one that may. The most frequent kinds come first."""
    if cls is int or (cls is not bool and issubclass(cls, int)):
        return _integer(value)
    if issubclass(cls, str):
        return _text(value)
    if issubclass(cls, float):
        return b"D" + _FLOAT.pack(value)
    if value is True:
        return b"T"
    if value is False:
        return b"F"
    if value is None:
        return b"N"
    if value is Ellipsis:
        return b"."
    if value is NotImplemented:
        return b"!"
    if issubclass(cls, (list, tuple, dict, set, frozenset)):
        return None
    if issubclass(cls, complex):
        exact = complex.__pos__(value)
        return b"C" + _COMPLEX.pack(exact.real, exact.imag)
    if issubclass(cls, bytes):
        return _sized(b"B", bytes.__getitem__(value, slice(None)))
    if issubclass(cls, bytearray):
        return _sized(b"A", bytes(memoryview(value)))
    if cls is range:
        return b"G" + b"".join([_integer(part) for part in (value.start, value.stop, value.step)])
    return None


class _Encoder:
    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.parts: list[bytes] = []
        self.items = 0
        self.size = 0

    def put(self, data: bytes) -> None:
        self.size += len(data)
        self.parts.append(data)
        if self.size > MAX_FRAME:
            raise CodecError("larger than a frame may be")

    def count(self, tag: bytes, number: int) -> None:
        self.items += number
        if self.items > MAX_ITEMS:
            raise CodecError("too many items")
        self.put(tag + _LENGTH.pack(number))

    def add(self, value: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise CodecError("nested too deeply")
        cls = type(value)
        data = _leaf(value, cls)
        if data is None:
            self.container(value, cls, depth)
        else:
            self.put(data)

    def container(self, value: Any, cls: type, depth: int) -> None:
        if issubclass(cls, list):
            self.sequence(b"L", list.__getitem__(value, slice(None)), depth)
        elif issubclass(cls, tuple):
            self.sequence(b"U", tuple.__getitem__(value, slice(None)), depth)
        elif issubclass(cls, set):
            self.sequence(b"E", list(set.__iter__(value)), depth)
        elif issubclass(cls, frozenset):
            self.sequence(b"Z", list(frozenset.__iter__(value)), depth)
        elif issubclass(cls, dict):
            pairs = list(dict.items(value))
            self.count(b"M", len(pairs))
            for key, item in pairs:
                self.add(key, depth + 1)
                self.add(item, depth + 1)
        elif issubclass(cls, type) and id(value) in _TYPE_NAMES:
            self.put(b"Y" + _text(_TYPE_NAMES[id(value)]))
        elif cls is Opaque:
            self.put(b"O" + _text(value.side) + _NUMBER.pack(value.number) + _text(value.kind))
            self.names(value.names)
        elif cls is Thrown:
            self.put(b"X")
            self.names(value.names)
            self.put(_text(value.message))
            self.add(value.arguments, depth + 1)
        elif cls is ThrownType:
            self.put(b"Q")
            self.names(value.names)
        else:
            self.add(self.keep(value), depth + 1)

    def names(self, names: tuple[str, ...]) -> None:
        self.count(b"U", len(names))
        for name in names:
            self.put(_text(name))

    def sequence(self, tag: bytes, items: Any, depth: int) -> None:
        self.count(tag, len(items))
        for item in items:
            self.add(item, depth + 1)


def decode(data: bytes, find: Find = as_data) -> Any:
    """The value of these bytes, all of them. Raises CodecError, and nothing else but what `find` raises."""
    if len(data) > MAX_FRAME:
        raise CodecError("larger than a frame may be")
    decoder = _Decoder(data, find)
    try:
        value = decoder.take(0)
    except RecursionError:
        raise CodecError("nested too deeply") from None
    if decoder.place != len(data):
        raise CodecError("bytes are left over")
    return value


class _Decoder:
    def __init__(self, data: bytes, find: Find) -> None:
        self.data, self.find = data, find
        self.place = 0
        self.items = 0

    def raw(self, count: int) -> bytes:
        end = self.place + count
        if end > len(self.data):
            raise CodecError("the bytes end too early")
        part, self.place = self.data[self.place : end], end
        return part

    def length(self) -> int:
        place = self.place
        if place + 4 > len(self.data):
            raise CodecError("the bytes end too early")
        self.place = place + 4
        return _LENGTH.unpack_from(self.data, place)[0]  # type: ignore[no-any-return]

    def count(self) -> int:
        number = self.length()
        self.items += number
        if self.items > MAX_ITEMS or number > len(self.data) - self.place:
            raise CodecError("too many items")
        return number

    def expect(self, tag: bytes) -> None:
        if self.raw(1) != tag:
            raise CodecError("another kind of value was expected")

    def text(self) -> str:
        self.expect(b"S")
        return self.text_body()

    def text_body(self) -> str:
        try:
            return self.raw(self.length()).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise CodecError("text is not UTF-8") from None

    def integer(self) -> int:
        length = self.length()
        if not 0 < length <= MAX_INTEGER:
            raise CodecError("an integer has too many digits")
        return int.from_bytes(self.raw(length), "big", signed=True)

    def names(self) -> tuple[str, ...]:
        self.expect(b"U")
        return tuple([self.text() for _ in range(self.count())])

    def take(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise CodecError("nested too deeply")
        place = self.place
        if place >= len(self.data):
            raise CodecError("the bytes end too early")
        tag, self.place = self.data[place], place + 1
        if tag == _INTEGER:
            return self.integer()
        if tag == _TEXT:
            return self.text_body()
        if tag in _SINGLES:
            return _SINGLES[tag]
        reader = _READERS.get(tag)
        if reader is None:
            raise CodecError("an unknown kind of value")
        return reader(self, depth + 1)

    def sequence(self, depth: int) -> Any:
        return [self.take(depth) for _ in range(self.count())]

    def unique(self, depth: int, kind: Any) -> Any:
        items = self.sequence(depth)
        try:
            result = kind(items)
        except TypeError:
            raise CodecError("a member of a set cannot be hashed") from None
        if len(result) != len(items):
            raise CodecError("a member of a set stands there twice")
        return result

    def mapping(self, depth: int) -> Any:
        result = {}
        number = self.count()
        for _ in range(number):
            key = self.take(depth)
            value = self.take(depth)
            try:
                result[key] = value
            except TypeError:
                raise CodecError("a key cannot be hashed") from None
        if len(result) != number:
            raise CodecError("a key stands there twice")
        return result

    def span(self) -> Any:
        parts = []
        for _ in range(3):
            self.expect(b"I")
            parts.append(self.integer())
        if parts[2] == 0:
            raise CodecError("a range without a step")
        return range(*parts)

    def builtin(self) -> Any:
        name = self.text()
        if name not in _TYPES:
            raise CodecError("an unknown built-in type")
        return _TYPES[name]

    def opaque(self) -> Any:
        side = self.text()
        number = int(_NUMBER.unpack(self.raw(8))[0])
        return self.find(Opaque(side, number, self.text(), self.names()))

    def thrown(self, depth: int) -> Any:
        names, message, arguments = self.names(), self.text(), self.take(depth)
        if not names or (arguments is not None and type(arguments) is not tuple):
            raise CodecError("an exception without a name")
        return self.find(Thrown(names, message, arguments))

    def thrown_type(self) -> Any:
        names = self.names()
        if not names:
            raise CodecError("an exception without a name")
        return self.find(ThrownType(names))


_READERS: dict[int, Callable[[_Decoder, int], Any]] = {
    ord(tag): reader
    for tag, reader in {
        "D": lambda d, _: _FLOAT.unpack(d.raw(8))[0],
        "C": lambda d, _: complex(*_COMPLEX.unpack(d.raw(16))),
        "B": lambda d, _: d.raw(d.length()),
        "A": lambda d, _: bytearray(d.raw(d.length())),
        "G": lambda d, _: d.span(),
        "L": lambda d, depth: d.sequence(depth),
        "U": lambda d, depth: tuple(d.sequence(depth)),
        "E": lambda d, depth: d.unique(depth, set),
        "Z": lambda d, depth: d.unique(depth, frozenset),
        "M": lambda d, depth: d.mapping(depth),
        "Y": lambda d, _: d.builtin(),
        "O": lambda d, _: d.opaque(),
        "X": lambda d, depth: d.thrown(depth),
        "Q": lambda d, _: d.thrown_type(),
    }.items()
}


def frame(payload: bytes) -> bytes:
    """A message as it stands on the wire: its length, then itself. Raises CodecError when it is too large."""
    if len(payload) > MAX_FRAME:
        raise CodecError("larger than a frame may be")
    return _LENGTH.pack(len(payload)) + payload


class Frames:
    """Cuts a byte stream into messages. `add` raises CodecError as soon as a length is out of bounds."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self.limit = limit
        self.buffer = bytearray()

    def add(self, data: bytes) -> None:
        self.buffer += data
        self._length()

    def next(self) -> Optional[bytes]:  # noqa: UP045
        """The next whole message, None while there is none."""
        length = self._length()
        if length is None or len(self.buffer) < 4 + length:
            return None
        message = bytes(self.buffer[4 : 4 + length])
        del self.buffer[: 4 + length]
        return message

    def _length(self) -> Optional[int]:  # noqa: UP045
        if len(self.buffer) < 4:
            return None
        length = int(_LENGTH.unpack(bytes(self.buffer[:4]))[0])
        if length > self.limit:
            raise CodecError("a message is longer than allowed")
        return length
