"""The families SecureBench knows. A new one is one more line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from securebench.families import (
    code_completion,
    free_response,
    multiple_choice,
    repo_patch,
    short_answer,
    terminal_task,
)
from securebench.families.base import Family

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        module.FAMILY.name: module.FAMILY
        for module in (
            multiple_choice,
            short_answer,
            free_response,
            code_completion,
            repo_patch,
            terminal_task,
        )
    }
)


def family(name: str) -> Family:
    """The family of that name. Raises KeyError for a name that was never registered."""
    return FAMILIES[name]
