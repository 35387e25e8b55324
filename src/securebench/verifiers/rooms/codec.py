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

_SINGLES = {b"N": None, b"T": True, b"F": False, b".": Ellipsis, b"!": NotImplemented}
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


class _Encoder:
    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.parts: list[bytes] = []
        self.items = 0
        self.size = 0

    def put(self, *parts: bytes) -> None:
        for part in parts:
            self.size += len(part)
            self.parts.append(part)
        if self.size > MAX_FRAME:
            raise CodecError("larger than a frame may be")

    def sized(self, tag: bytes, data: bytes) -> None:
        self.put(tag, _LENGTH.pack(len(data)), data)

    def text(self, value: str) -> None:
        self.sized(b"S", str.encode(value, "utf-8", "surrogatepass"))

    def integer(self, value: int) -> None:
        length = int.bit_length(value) // 8 + 1
        if length > MAX_INTEGER:
            raise CodecError("an integer has too many digits")
        self.sized(b"I", int.to_bytes(value, length, "big", signed=True))

    def count(self, tag: bytes, number: int) -> None:
        self.items += number
        if self.items > MAX_ITEMS:
            raise CodecError("too many items")
        self.put(tag, _LENGTH.pack(number))

    def add(self, value: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise CodecError("nested too deeply")
        cls = type(value)
        if value is None or value is True or value is False or value is Ellipsis or value is NotImplemented:
            self.put(next(tag for tag, single in _SINGLES.items() if single is value))
        elif issubclass(cls, str):
            self.text(value)
        elif issubclass(cls, int):
            self.integer(value)
        elif issubclass(cls, float):
            self.put(b"D", _FLOAT.pack(value))
        elif issubclass(cls, complex):
            exact = complex.__pos__(value)
            self.put(b"C", _COMPLEX.pack(exact.real, exact.imag))
        elif issubclass(cls, bytes):
            self.sized(b"B", bytes.__getitem__(value, slice(None)))
        elif issubclass(cls, bytearray):
            self.sized(b"A", bytes(memoryview(value)))
        elif cls is range:
            self.put(b"G")
            for part in (value.start, value.stop, value.step):
                self.integer(part)
        else:
            self.container(value, cls, depth)

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
            self.put(b"Y")
            self.text(_TYPE_NAMES[id(value)])
        elif cls is Opaque:
            self.put(b"O")
            self.text(value.side)
            self.put(_NUMBER.pack(value.number))
            self.text(value.kind)
            self.names(value.names)
        elif cls is Thrown:
            self.put(b"X")
            self.names(value.names)
            self.text(value.message)
            self.add(value.arguments, depth + 1)
        elif cls is ThrownType:
            self.put(b"Q")
            self.names(value.names)
        else:
            self.add(self.keep(value), depth + 1)

    def names(self, names: tuple[str, ...]) -> None:
        self.count(b"U", len(names))
        for name in names:
            self.text(name)

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
        return int(_LENGTH.unpack(self.raw(4))[0])

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
        tag = self.raw(1)
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


_READERS: dict[bytes, Callable[[_Decoder, int], Any]] = {
    b"S": lambda d, _: d.text_body(),
    b"I": lambda d, _: d.integer(),
    b"D": lambda d, _: _FLOAT.unpack(d.raw(8))[0],
    b"C": lambda d, _: complex(*_COMPLEX.unpack(d.raw(16))),
    b"B": lambda d, _: d.raw(d.length()),
    b"A": lambda d, _: bytearray(d.raw(d.length())),
    b"G": lambda d, _: d.span(),
    b"L": lambda d, depth: d.sequence(depth),
    b"U": lambda d, depth: tuple(d.sequence(depth)),
    b"E": lambda d, depth: d.unique(depth, set),
    b"Z": lambda d, depth: d.unique(depth, frozenset),
    b"M": lambda d, depth: d.mapping(depth),
    b"Y": lambda d, _: d.builtin(),
    b"O": lambda d, _: d.opaque(),
    b"X": lambda d, depth: d.thrown(depth),
    b"Q": lambda d, _: d.thrown_type(),
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
