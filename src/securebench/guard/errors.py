"""Denials: a RuntimeError, as the safety document says, and the natural type too, so that fallbacks still work."""

from __future__ import annotations


class GuardError(RuntimeError):
    """The guard refused an operation; the message names it and what would allow it."""


class GuardPermissionError(GuardError, PermissionError):
    """A file, process, socket, signal or limit."""


class GuardImportError(GuardError, ImportError):
    """A module."""


KINDS = (
    ("imports", GuardImportError),
    ("reload", GuardImportError),
    ("dynamic_code", GuardError),
    ("tampering", GuardError),
)
for _kind in (GuardError, GuardPermissionError, GuardImportError):
    _kind.__module__ = "builtins"  # shown without the name of a module nobody can import


def kind_of(item: str) -> type[GuardError]:
    """The class that an item's denials have."""
    return dict(KINDS).get(item, GuardPermissionError)
