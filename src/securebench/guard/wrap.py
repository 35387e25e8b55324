"""Stubs for operations that raise no audit event: they only say why; the kernel's filter is what refuses."""

from __future__ import annotations

import sys

from .bake import bake
from .rules import STUBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def stub(*args: Any, **options: Any) -> Any:  # noqa: ARG001
    """Raises the denial."""
    refuse: Any = "@refuse"
    verdict: Any = "@verdict"
    getframe: Any = "@getframe"
    raise refuse(verdict, getframe(1))


def make_stubs(blocked: frozenset[str], refuse: Any) -> tuple[tuple[str, str, Any], ...]:
    """Module, attribute and stub, for every operation that is blocked in this run."""
    made = []
    for item, module, names in STUBS:
        if item in blocked:
            for name in names:
                one = bake(stub, refuse=refuse, verdict=(item, f"{module}.{name}"), getframe=sys._getframe)
                made.append((module, name, one))
    return tuple(made)


def put(stubs: tuple[tuple[str, str, Any], ...]) -> None:
    """Replace them in what is loaded already; the loader does it for what comes later."""
    for module, name, one in stubs:
        for place in (module, "os") if module == "posix" else (module,):
            loaded = sys.modules.get(place)
            if loaded is not None and name in loaded.__dict__:
                loaded.__dict__[name] = one
