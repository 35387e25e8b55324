"""A piece of a page as a value: `[element, class, child, …]`, a text being itself.

It is written into the page as HTML, or into its data as JSON, from which the page's script builds the same elements.
There are elements, classes and texts, and nothing else: no attribute and no address that a stranger could fill. Texts
are made visible where a piece is made, and never cut: whoever makes it has done so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from securebench._text import visible

if TYPE_CHECKING:
    from markupsafe import Markup

Node = list[Any]  # of itself and texts, which no type can say

_TEXTS = ("b", "code", "del", "ins", "p", "pre", "small", "span", "strong", "summary")
TAGS = frozenset((*_TEXTS, "dd", "details", "div", "dl", "dt", "li", "ol", "ul"))
"""The script builds these and no others."""
FACTS = "facts"
"""And this, which stands for a list of names and values: there are many of them."""
OPEN = "open"  # a class that opens a `details`


def node(tag: str, kind: str = "", *children: Node | str | None) -> Node:
    """What is None is left out. Raises ValueError for an element that no page builds."""
    if tag not in TAGS:
        raise ValueError(f"no page builds a {tag}")
    made: Node = [tag, kind]
    for child in children:
        if isinstance(child, str):
            made.append(visible(child))
        elif child is not None:
            made.append(child)
    return made


def facts(pairs: Iterable[tuple[str, str]]) -> Node:
    """Names and values."""
    return [FACTS, "", *(visible(text) for pair in pairs for text in pair)]


def as_html(piece: Node) -> Markup:
    from markupsafe import Markup

    return Markup("".join(_pieces(piece)))  # noqa: S704 - escaped piece by piece


def _pieces(piece: Node) -> Iterator[str]:
    from markupsafe import escape

    tag, kind, *children = piece
    if tag == FACTS:
        pairs = zip(children[::2], children[1::2], strict=True)
        yield from _pieces(node("dl", "facts", *(_pair(name, value) for name, value in pairs)))
        return
    named = f' class="{escape(kind)}"' if kind else ""
    more = " open" if tag == "details" and OPEN in kind.split() else ""
    more += ' tabindex="0"' if tag == "pre" else ""  # what scrolls can be reached without a mouse
    yield f"<{tag}{named}{more}>"
    for child in children:
        if isinstance(child, str):
            yield str(escape(child))
        else:
            yield from _pieces(child)
    yield f"</{tag}>"


def _pair(name: str, value: str) -> Node:
    return node("div", "", node("dt", "", name), node("dd", "stranger", value))
