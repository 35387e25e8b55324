"""A room's end of its channel: whole messages, one at a time, blocking."""

from __future__ import annotations

import fcntl
import os

from securebench.verifiers.rooms.codec import MAX_FRAME, CodecError, frame

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Optional

_SAFE = 200  # beyond the numbers that programs use by habit


class Pipe:
    """Sends and receives messages on two descriptors."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing

    def send(self, payload: bytes) -> None:
        """Raises CodecError for one that is too large, OSError when nobody listens any more."""
        view = memoryview(frame(payload))
        while view:
            view = view[os.write(self.writing, view) :]

    def receive(self) -> Optional[bytes]:
        """The next message, None when the other end was closed. Raises CodecError for one that is too large."""
        head = self._exactly(4)
        if head is None:
            return None
        length = int.from_bytes(head, "big")
        if length > MAX_FRAME + 1:
            raise CodecError("a message is longer than allowed")
        return self._exactly(length)

    def _exactly(self, count: int) -> Optional[bytes]:
        parts = []
        while count:
            part = os.read(self.reading, min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def take_channel(reading: int, writing: int) -> Pipe:
    """Move the channel out of the way of programs: their input is empty then, their output goes to stderr."""
    pipe = Pipe(*[fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _SAFE) for number in (reading, writing)])
    for number in {reading, writing} - {0, 1, 2}:
        os.close(number)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipe
