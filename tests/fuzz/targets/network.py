"""What an agent sends to the proxy: the head of a request, the first bytes of TLS."""

from __future__ import annotations

import re

from securebench.egress.client_hello import MAX_BYTES, ClientHelloReader
from securebench.egress.decisions import Refused
from securebench.egress.requests import END, read_ask, read_head

CANONICAL = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


def proxy_head(data: bytes) -> None:
    """Refused, or a canonical host, a port, and fields that say the length of a body at most once."""
    head = data.partition(END)[0] + END
    try:
        _, request, fields = read_head(head)
        ask = read_ask(request, fields)
    except Refused:
        return
    assert CANONICAL.fullmatch(ask.host), ask.host
    assert 0 < ask.port < 65536
    framing = [name for name, _ in ask.fields if name in (b"content-length", b"transfer-encoding")]
    assert len(framing) <= 1
    if not ask.tunnel:
        assert [value for name, value in ask.fields if name == b"host"] == [ask.host.encode()]
        assert ask.target.startswith(b"/")
        assert not set(ask.target) & set(b" \r\n\0#")
        assert not any(set(name + value) & set(b"\r\n\0") for name, value in ask.fields)


def client_hello(data: bytes) -> None:
    """However the bytes arrive, the same name or the same refusal; never more held than allowed."""
    if not data:
        return
    step, stream = data[0] + 1, data[1:]

    def read(size: int) -> tuple[str | None, str | None]:
        reader = ClientHelloReader()
        name = None
        try:
            for start in range(0, len(stream), size):
                name = reader.feed(stream[start : start + size])
                if name is not None:
                    break
                assert len(reader.seen) <= MAX_BYTES
        except Refused as refused:
            return None, refused.reason
        return name, None

    found = read(step)
    assert found == read(1)
    if found[0] is not None:
        assert CANONICAL.fullmatch(found[0])
        assert found[0].encode() in stream.lower()
