"""Text from strangers, made safe to show: control and invisible characters become visible escapes."""

from __future__ import annotations

import re
import unicodedata

_NOT_PLAIN = re.compile("[^ -~]")
# Letters, marks and symbols that Python calls printable and that show nothing: joiners, fillers, an empty Braille cell,
# and the selectors of variants beyond those that emoji use.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufff0-\ufff8\U000e0100-\U000e01ef]")


def visible(text: str, keep: str = "\n\t") -> str:
    """No escape sequence, carriage return, lone surrogate, bidirectional override or letter that shows nothing is left
    in it."""
    if text.isprintable() and (text.isascii() or not _BLANK.search(text)):
        return text
    return _NOT_PLAIN.sub(lambda found: _shown(found[0], keep), text)


def one_line(text: str, width: int) -> str:
    """The same on one line, cut to `width`."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def _shown(char: str, keep: str) -> str:
    return char if char in keep or _harmless(char) else _escape(char)


def _harmless(char: str) -> bool:
    return (char.isprintable() and not _BLANK.match(char)) or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
