"""Reads the name a TLS client asks for out of the first bytes it sends. Reads no further and trusts no length.

Strict: one handshake message of at most 16 KiB over as many records as it takes, lengths that agree at every level,
no extension twice, exactly one server name. A hello that hides its real name (ECH, or its forerunner) is refused,
whether it means it or only pretends to: the two cannot be told apart from outside."""

from __future__ import annotations

from securebench.egress.decisions import Reason, Refused
from securebench.egress.names import requested_domain

MAX_HELLO = 16 * 1024
MAX_BYTES = 2 * MAX_HELLO  # with the heads of records
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0x0000
_HIDING = frozenset({0xFE0D, 0xFFCE})
_VERSIONS = frozenset({0x0301, 0x0302, 0x0303})


class ClientHelloReader:
    """Fed with bytes as they arrive, it keeps all of them in `seen` and says the name as soon as it can."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self._message = bytearray()
        self._offset = 0

    def feed(self, data: bytes) -> str | None:
        """The canonical server name, or None while more bytes are needed. Raises Refused.

        What follows the hello in `seen` is left as it is."""
        self.seen += data
        while (record := self._record()) is not None:
            self._message += record
            if (message := self._complete()) is not None:
                return server_name(message)
        if len(self.seen) > MAX_BYTES:
            raise Refused(Reason.BAD_HELLO)
        return None

    def _record(self) -> bytes | None:
        """The content of the next whole record; what is seen of its head is judged at once."""
        head = self.seen[self._offset : self._offset + 5]
        if (head and head[0] != _HANDSHAKE) or (len(head) > 1 and head[1] != 3):
            raise Refused(Reason.BAD_HELLO if self._offset else Reason.NOT_TLS)
        if len(head) < 5:
            return None
        length = int.from_bytes(head[3:5], "big")
        if head[2] > 3 or not 0 < length <= MAX_HELLO:
            raise Refused(Reason.BAD_HELLO)
        start = self._offset + 5
        if len(self.seen) < start + length:
            return None
        self._offset = start + length
        return bytes(self.seen[start : self._offset])

    def _complete(self) -> bytes | None:
        """The body of the hello once it is all there; the record that ends it must end with it."""
        message = self._message
        if message[0] != _CLIENT_HELLO:
            raise Refused(Reason.BAD_HELLO)
        if len(message) < 4:
            return None
        length = int.from_bytes(message[1:4], "big")
        if length > MAX_HELLO or len(message) > 4 + length:
            raise Refused(Reason.BAD_HELLO)
        return bytes(message[4:]) if len(message) == 4 + length else None


class _Fields:
    """Takes fields off the front of bytes. Raises Refused where there is less than a field says."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._data):
            raise Refused(Reason.BAD_HELLO)
        field = self._data[self._at : end]
        self._at = end
        return field

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def vector(self, width: int, least: int, most: int) -> bytes:
        """A field that has its length, in `width` bytes, before it."""
        length = self.number(width)
        if not least <= length <= most:
            raise Refused(Reason.BAD_HELLO)
        return self.take(length)

    @property
    def empty(self) -> bool:
        return self._at == len(self._data)

    def end(self) -> None:
        if not self.empty:
            raise Refused(Reason.BAD_HELLO)


def server_name(body: bytes) -> str:
    """The canonical name in the body of a ClientHello. Raises Refused."""
    extensions = _extensions(body)
    if _HIDING & extensions.keys():
        raise Refused(Reason.ENCRYPTED_HELLO)
    if _SERVER_NAME not in extensions:
        raise Refused(Reason.NO_SNI)
    outer = _Fields(extensions[_SERVER_NAME])
    names = _Fields(outer.vector(2, 1, 0xFFFF))
    outer.end()
    if names.number(1) != 0:
        raise Refused(Reason.BAD_HELLO)
    name = names.vector(2, 1, 0xFFFF)
    names.end()  # a second name, of whatever type
    try:
        return requested_domain(name)
    except Refused:
        raise Refused(Reason.WRONG_SNI) from None


def _extensions(body: bytes) -> dict[int, bytes]:
    fields = _Fields(body)
    if fields.number(2) not in _VERSIONS:
        raise Refused(Reason.BAD_HELLO)
    fields.take(32)
    fields.vector(1, 0, 32)
    if len(fields.vector(2, 2, 0xFFFE)) % 2:
        raise Refused(Reason.BAD_HELLO)
    fields.vector(1, 1, 0xFF)
    if fields.empty:  # a client so old that it has no extensions
        raise Refused(Reason.NO_SNI)
    block = _Fields(fields.vector(2, 0, 0xFFFF))
    fields.end()
    extensions: dict[int, bytes] = {}
    while not block.empty:
        kind = block.number(2)
        if kind in extensions:
            raise Refused(Reason.BAD_HELLO)
        extensions[kind] = block.vector(2, 0, 0xFFFF)
    return extensions
