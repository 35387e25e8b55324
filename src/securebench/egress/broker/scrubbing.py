"""Takes the real key out of what goes back to an agent, also where it is spread over two chunks."""

from __future__ import annotations

from urllib.parse import quote

from securebench import _json

MIN_SECRET = 8  # shorter ones are words such as `ollama`: no secrets, and they occur in replies
_SCRUBBED = b"[scrubbed]"


class Scrubber:
    """A stream filter. It holds back only bytes that may be the beginning of the key."""

    def __init__(self, key: str | None) -> None:
        self._needles = _spellings(key)
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What may go on now."""
        if not self._needles:
            return chunk
        data = self._held + chunk if self._held else chunk
        for needle in self._needles:
            if needle in data:
                data = data.replace(needle, _SCRUBBED)
        keep = max(_overlap(data, needle) for needle in self._needles)
        self._held = data[len(data) - keep :] if keep else b""
        return data[: len(data) - keep] if keep else data

    def finish(self) -> bytes:
        """What was held back and turned out to be nothing."""
        held, self._held = self._held, b""
        return held


def scrubbed(data: bytes, key: str | None) -> bytes:
    """All of it at once."""
    scrubber = Scrubber(key)
    return scrubber.feed(data) + scrubber.finish()


def _spellings(key: str | None) -> tuple[bytes, ...]:
    """The key as it is, inside a JSON text, and inside a URL."""
    if key is None or len(key) < MIN_SECRET:
        return ()
    in_json = _json.dumps(key)[1:-1]
    spellings = {key, in_json, in_json.replace("/", "\\/"), quote(key, safe=""), quote(key)}
    return tuple(sorted((text.encode() for text in spellings), key=len, reverse=True))


def _overlap(data: bytes, needle: bytes) -> int:
    """How many of the last bytes are the beginning of the needle."""
    first = needle[:1]
    begin = data.find(first, max(0, len(data) - len(needle) + 1))
    while begin >= 0:
        if needle.startswith(data[begin:]):
            return len(data) - begin
        begin = data.find(first, begin + 1)
    return 0
