"""Which verifier judges which task type."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from securebench.families.registry import FAMILIES
from securebench.verifiers.base import Verifier


@cache
def verifier_for_task_type(task_type: str) -> Verifier | None:
    """The one verifier its family names, imported now; None where there is none, so the record stays `pending`."""
    family = FAMILIES.get(task_type)
    if family is None or family.verifier is None:
        return None
    module, _, name = family.verifier.partition(":")
    return cast(Verifier, getattr(import_module(module), name)())
