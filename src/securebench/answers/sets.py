"""Unordered sets: elements on one line, each read by the grammar of its type."""

from __future__ import annotations

from collections.abc import Callable, Hashable

MAX_ELEMENTS = 256
"""Elements of one set; more belong in a file, not on a line."""

SEMICOLON, COMMA = ";", ","


def read_set(text: str, read_element: Callable[[str], Hashable | None]) -> frozenset[Hashable] | None:
    """The set that `text` lists, or None.

    1. Elements are separated by commas; if there is a semicolon anywhere, by semicolons, and commas belong to
       the elements. Order does not count.
    2. Every element must be readable as its type; an empty element, an element given twice or more than
       MAX_ELEMENTS elements make it None. Brackets and `and` are not separators.
    """
    parts = text.split(SEMICOLON if SEMICOLON in text else COMMA, MAX_ELEMENTS)
    if len(parts) > MAX_ELEMENTS:
        return None
    elements = [read_element(part.strip(" \t")) if part.strip(" \t") else None for part in parts]
    distinct = frozenset(element for element in elements if element is not None)
    return distinct if len(distinct) == len(elements) else None
