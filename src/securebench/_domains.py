"""The one grammar of host names: what a pack or a tester file may allow, and what a client may ask for."""

from __future__ import annotations

import re

MAX_DOMAIN = 253
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


def canonical_domain(text: str) -> str:
    """The one spelling of a host name under which it is compared, resolved and dialled.

    Only the case of ASCII letters is changed; everything else that is not already in form is refused, never
    repaired. A name is two or more labels of letters, digits and inner hyphens, the last of which starts with a
    letter: so no spelling of an IP address is one (decimal, octal, hexadecimal, short or IPv6), nor is a name with a
    trailing dot, a port, user information, an escape, an underscore or a letter outside ASCII. Punycode labels
    (`xn--`) are taken as they are.

    Raises ValueError with the reason."""
    if not text.isascii():  # before lower(), which turns some other letters into ASCII ones
        raise ValueError("a host name is written in ASCII; write an international name in its xn-- form")
    if len(text) > MAX_DOMAIN:
        raise ValueError(f"a host name has at most {MAX_DOMAIN} characters")
    name = text.lower()
    labels = name.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("a host name is labels of letters, digits and inner hyphens, with dots only between them")
    if len(labels) < 2:
        raise ValueError("a host name has at least one dot")
    if not labels[-1][0].isalpha():
        raise ValueError("a host name is a name; an IP address, in any spelling, is not")
    return name
