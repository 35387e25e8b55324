"""Text from strangers, made safe to show: control and invisible characters become visible escapes."""

from __future__ import annotations

import unicodedata


def visible(text: str, keep: str = "\n\t") -> str:
    """No escape sequence, carriage return, lone surrogate or bidirectional override is left in it."""
    return "".join(char if char in keep or _harmless(char) else _escape(char) for char in text)


def one_line(text: str, width: int) -> str:
    """The same on one line, cut to `width`."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def _harmless(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
