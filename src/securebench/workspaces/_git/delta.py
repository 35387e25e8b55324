"""Git's delta encoding, decoded within bounds. Pure."""

from __future__ import annotations


def apply_delta(base: bytes, delta: bytes, limit: int) -> bytes:
    """The object that `delta` makes of `base`. Raises ValueError when it does not fit or makes too much."""
    try:
        return _apply(base, delta, limit)
    except IndexError:
        raise ValueError("a delta that ends too early") from None


def _apply(base: bytes, delta: bytes, limit: int) -> bytes:
    source, at = _size(delta, 0)
    wanted, at = _size(delta, at)
    if source != len(base):
        raise ValueError("a delta for another object")
    if wanted > limit:
        raise ValueError(f"an object of {wanted} bytes; at most {limit} are allowed")
    pieces, left = [], wanted
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 0x80:
            offset, size, at = _copy(delta, code, at)
            piece = base[offset : offset + size]
        else:
            size = code
            piece = delta[at : at + size]
            at += size
        left -= size
        if not size or len(piece) != size or left < 0:
            raise ValueError("a damaged delta")
        pieces.append(piece)
    if left:
        raise ValueError("a delta that ends too early")
    return b"".join(pieces)


def _size(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = delta[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
    raise ValueError("a delta with an impossible size")


def _copy(delta: bytes, code: int, at: int) -> tuple[int, int, int]:
    offset = size = 0
    for bit in range(4):
        if code & (1 << bit):
            offset |= delta[at] << (8 * bit)
            at += 1
    for bit in range(3):
        if code & (0x10 << bit):
            size |= delta[at] << (8 * bit)
            at += 1
    return offset, size or 0x10000, at
