"""A pickle that is nothing but one text, read byte by byte. Nothing is loaded, imported or called.

    PROTO?  FRAME?  (SHORT_BINUNICODE | BINUNICODE | BINUNICODE8) text  FRAME?  (MEMOIZE | BINPUT | LONG_BINPUT)?  STOP

Every other byte is refused: opcodes that make objects have no meaning here."""

from __future__ import annotations

_PROTO, _FRAME, _STOP = 0x80, 0x95, 0x2E
_TEXTS = {0x8C: 1, 0x58: 4, 0x8D: 8}  # opcode: bytes of the length that follows it
_NOTES = {0x94: 0, 0x71: 1, 0x72: 4}  # opcode: bytes of the number that follows it


class NotOneText(ValueError):
    """It holds something else, or more, or is cut off."""


def pickled_text(data: bytes) -> str:
    """The text in it. Raises NotOneText."""
    place = _after(data, 0, _PROTO, 1)
    place = _after(data, place, _FRAME, 8)
    opcode = _byte(data, place)
    if opcode not in _TEXTS:
        raise NotOneText("it holds something else than one text")
    begin = place + 1 + _TEXTS[opcode]
    size = int.from_bytes(data[place + 1 : begin], "little")
    end = begin + size
    if end > len(data):
        raise NotOneText("it is cut off")
    place = _after(data, end, _FRAME, 8)
    for note, width in _NOTES.items():
        place = _after(data, place, note, width)
    if _byte(data, place) != _STOP or place + 1 != len(data):
        raise NotOneText("it holds more than one text")
    try:
        return data[begin:end].decode()
    except UnicodeDecodeError:
        raise NotOneText("its text is not UTF-8") from None


def _after(data: bytes, place: int, opcode: int, width: int) -> int:
    """Behind an opcode and its argument, where it stands here."""
    return place + 1 + width if place < len(data) and data[place] == opcode else place


def _byte(data: bytes, place: int) -> int:
    if place >= len(data):
        raise NotOneText("it is cut off")
    return data[place]
