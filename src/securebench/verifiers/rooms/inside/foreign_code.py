"""Tests that execute what the candidate returned would run its code beside them: refused where it is seen.

Python reports what it compiles and executes. A text that shares a piece with what the worker sent, and with nothing
that the tests hold or sent themselves, is the candidate's. Only suites that speak of such calls are watched."""

from __future__ import annotations

import re
import sys

from securebench.verifiers.rooms.inside.remote import Link, OpaqueValue

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any, Iterator

PIECE = 16  # bytes; less than that cannot do much
KEPT = 8 * 1024 * 1024
_SPOKEN_OF = re.compile(r"\b(eval|exec|compile|pickle|marshal|runpy|subprocess|system|popen)\b")
_EVENTS = ("compile", "marshal.loads", "os.system", "subprocess.Popen")
_ONLY_PARSED = "<unknown>"  # the file name of `ast.parse` and `ast.literal_eval`


class Watch:
    """What was said on the line, and whose it is."""

    def __init__(self, own: str, link: Link) -> None:
        self.own, self.link = bytearray(_bytes(own)), link
        self.foreign = bytearray()
        self.looking = False

    def sent(self, data: bytes) -> None:
        self.own += data
        del self.own[:-KEPT]

    def received(self, data: bytes) -> None:
        self.foreign += data
        del self.foreign[:-KEPT]

    def hook(self, event: str, details: Any) -> None:
        """Raises OpaqueValue."""
        if self.looking:
            return
        self.looking = True
        try:
            if event == "pickle.find_class" and self.foreign and details[0] not in self.link.test_modules:
                raise OpaqueValue("what the candidate returned must not be unpickled beside the tests")
            if event not in _EVENTS or (event == "compile" and details[1] == _ONLY_PARSED):
                return
            if any(self.is_foreign(text) for text in _texts(details)):
                raise OpaqueValue("what the candidate returned must not be executed beside the tests")
        finally:
            self.looking = False

    def is_foreign(self, text: bytes) -> bool:
        pieces = [text[place : place + PIECE] for place in range(0, max(len(text) - PIECE, 0) + 1, PIECE // 2)]
        pieces.append(text[-PIECE:])
        return any(len(piece) == PIECE and piece in self.foreign and piece not in self.own for piece in pieces)


def watch(texts: list[str], link: Link) -> None:
    """From here on, where these tests speak of executing something."""
    own = "\n".join(texts)
    if _SPOKEN_OF.search(own):
        link.watch = Watch(own, link)
        sys.addaudithook(link.watch.hook)


def _texts(details: Any) -> Iterator[bytes]:
    for detail in details:
        if isinstance(detail, (str, bytes)):
            yield _bytes(detail)
        elif isinstance(detail, (list, tuple)):
            yield from _texts(detail)


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
