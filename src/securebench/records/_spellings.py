"""How a secret looks after a tool wrote it: escaped, quoted, dumped or encoded.

Only what honest tools do: a program that sees a secret and wants to pass it on has endless ways to write it, and what
stops that are the walls between the lanes. So there is no reversed text here, no cipher, no compressed form, and no
dump that is broken into lines."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote, quote_plus

_SHORTEST_CORE = 5
_PLAIN = re.compile(r"[ !#-%(-.0-;=?-\[\]-~]*")  # nothing in it that a quoting tool would touch
_SEPARATORS = ("", " ", ":", "\\x", "\\u00")


@dataclass(frozen=True, slots=True)
class Dialect:
    """`spell` gives the spellings of a secret. A folded text of which `hint` says no holds none of them; it is told
    the length of the shortest secret."""

    name: str
    spell: Callable[[str], Iterator[str]]
    hint: Callable[[str, int], bool]


def _plain(text: str) -> Iterator[str]:
    yield text


def _escaped(text: str) -> Iterator[str]:
    """JSON and the languages whose literals look like it, once and twice."""
    if _PLAIN.fullmatch(text):
        return
    wide, narrow = json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]
    once = {wide, narrow, wide.replace("/", "\\/"), narrow.replace("/", "\\/"), repr(text)[1:-1]}
    yield from once
    yield repr(_raw(text))[2:-1]
    yield text.encode("unicode_escape").decode("ascii")
    for form in once:
        yield json.dumps(form)[1:-1]
        if not form.isascii():
            yield json.dumps(form, ensure_ascii=False)[1:-1]


def _markup(text: str) -> Iterator[str]:
    base = html.escape(text, quote=False)
    forms = {base, html.escape(text)}
    for double in ("&quot;", "&#34;"):
        for single in ("&#39;", "&apos;", "'"):
            forms.add(base.replace('"', double).replace("'", single))
    for form in forms:
        if form != text:
            yield form
        if not form.isascii():
            yield form.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _address(text: str) -> Iterator[str]:
    raw = _raw(text)
    yield quote(raw)
    yield quote_plus(raw)
    whole = quote(raw, safe="")
    yield whole
    yield quote(raw, safe="!~*'()")  # as JavaScript's encodeURIComponent
    yield quote(raw, safe=";,/?:@&=+$!~*'()#")  # and encodeURI
    yield quote(whole, safe="")


def _hex(text: str) -> Iterator[str]:
    digits = _raw(text).hex(" ")
    for separator in _SEPARATORS:
        yield digits.replace(" ", separator)


def _wide(text: str) -> Iterator[str]:
    """UTF-16 that was read as if a character were a byte."""
    yield "\0".join(text)


def _base64(text: str) -> Iterator[str]:
    """The characters every base64 text contains that holds the secret at any offset."""
    raw = _raw(text)
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + raw).decode("ascii").rstrip("=")
        core = encoded[(0, 2, 3)[lead] : len(encoded) - (1 if (lead + len(raw)) % 3 else 0)]
        if len(core) >= _SHORTEST_CORE:
            yield core
            if "+" in core or "/" in core:
                yield core.replace("+", "-").replace("/", "_")


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@cache
def _run(characters: str, length: int) -> re.Pattern[str]:
    return re.compile(f"(?:{characters}){{{length}}}")


def _may_be_hex(text: str, shortest: int) -> bool:
    return _run(r"[0-9a-f]{2}(?:[ :]|\\x|\\u00)?", shortest).search(text) is not None


def _may_be_base64(text: str, shortest: int) -> bool:
    return _run("[a-z0-9+/_-]", max(_SHORTEST_CORE, shortest * 4 // 3 - 1)).search(text) is not None


DIALECTS = (
    Dialect("plain", _plain, lambda text, _: True),  # noqa: ARG005
    Dialect("escaped", _escaped, lambda text, _: "\\" in text),
    Dialect("markup", _markup, lambda text, _: "&" in text),
    Dialect("address", _address, lambda text, _: "%" in text or "+" in text),
    Dialect("wide", _wide, lambda text, _: "\0" in text),
    Dialect("hex", _hex, _may_be_hex),
    Dialect("base64", _base64, _may_be_base64),
)
