"""The name server of an attacker: the first answer for a name is public, every later one is not."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping

A = 1


def serve_zone(at: tuple[str, int], first: str, flips: Mapping[str, str]) -> None:
    """Answer in a thread. `loop-7.rebind.test` flips to `flips["loop"]`. Answers may not be kept."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(at)
    asked: Counter[bytes] = Counter()

    def loop() -> None:
        while True:
            query, peer = sock.recvfrom(2048)
            name, kind, question = _question(query)
            address = None
            if kind == A:
                asked[name] += 1
                address = first if asked[name] == 1 else flips[name.split(b"-")[0].decode()]
            sock.sendto(_answer(query, question, address), peer)

    threading.Thread(target=loop, daemon=True).start()


def _question(query: bytes) -> tuple[bytes, int, bytes]:
    at, labels = 12, []
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length])
        at += 1 + length
    kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
    return b".".join(labels).lower(), kind, query[12 : at + 5]


def _answer(query: bytes, question: bytes, address: str | None) -> bytes:
    head = query[:2] + struct.pack("!HHHHH", 0x8580, 1, 1 if address else 0, 0, 0)
    if address is None:
        return head + question
    return head + question + b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 0, 4) + socket.inet_aton(address)
