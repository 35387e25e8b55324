"""What a candidate's process sends: values, and the frames they come in."""

from __future__ import annotations

from securebench.verifiers.rooms.codec import CodecError, Frames, decode, encode, frame


def codec(data: bytes) -> None:
    """Decoding is total, and what was decoded is written in one way only."""
    try:
        value = decode(data)
    except CodecError:
        return
    again = encode(value)
    assert encode(decode(again)) == again
    assert type(value).__module__ in (
        "builtins",
        "decimal",
        "fractions",
        "datetime",
        "securebench.verifiers.rooms.codec",
    )


def frames(data: bytes) -> None:
    """However a stream is cut, the same messages come out of it, and nothing is held that no message can use."""
    if not data:
        return
    step, stream = data[0] + 1, data[1:]

    def messages(size: int) -> tuple[list[bytes], bool]:
        reader, found = Frames(limit=4096), []
        for start in range(0, len(stream), size):
            try:
                reader.add(stream[start : start + size])
                while (message := reader.next()) is not None:
                    found.append(message)
            except CodecError:
                return found, False
            assert len(reader.buffer) < 4 + 4096 + size
        return found, True

    whole, cut = messages(len(stream) or 1), messages(step)
    assert whole == cut
    if whole[1]:
        assert stream.startswith(b"".join(map(frame, whole[0])))
