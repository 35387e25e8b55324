"""Which verifier judges which task type."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from securebench.candidates.store import CandidateStore
from securebench.families.registry import FAMILIES
from securebench.verifiers.base import Remembering, Verifier

_made: dict[str, Verifier] = {}


def verifier_for_task_type(task_type: str) -> Verifier | None:
    """The one verifier its family names, imported now; None where there is none, so the record stays `pending`."""
    family = FAMILIES.get(task_type)
    if family is None or family.verifier is None:
        return None
    if task_type not in _made:
        module, _, name = family.verifier.partition(":")
        _made[task_type] = cast(Verifier, getattr(import_module(module), name)())
    return _made[task_type]


def forget_store(store: CandidateStore) -> None:
    """No verifier keeps what it learned with this store."""
    for verifier in _made.values():
        if isinstance(verifier, Remembering):
            verifier.forget(store)
