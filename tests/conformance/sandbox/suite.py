"""The conformance suite, taken over check by check into a module whose `box` is another backend."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.conformance.sandbox import (
    test_channels,
    test_file_system,
    test_lifecycle,
    test_limits,
    test_listeners,
    test_network,
    test_processes,
    test_sessions,
    test_streams,
    test_walls,
)

_MODULES = (
    test_channels, test_file_system, test_lifecycle, test_limits, test_listeners, test_network, test_processes,
    test_sessions, test_streams, test_walls,
)  # fmt: skip

Check = Callable[..., None]


def checks(
    *excused: Mapping[str, str],
    once: bool = False,
    concerns: Callable[[Any], bool] = lambda _: True,
    of: tuple[types.ModuleType, ...] = _MODULES,
) -> dict[str, Check]:
    """Every check `of` these modules that takes any `box`, but for those with a reason, and for the values that concern
    the backend.

    With `once`, a check that is made for many values is made for the last one only: what differs from the backend
    that is checked for all of them is not in the values."""
    reasons = {name for each in excused for name in each}
    found: dict[str, Check] = {}
    for module in _MODULES:
        for name, check in vars(module).items():
            if not name.startswith("test_") or not inspect.isfunction(check):
                continue
            wanted = inspect.signature(check).parameters
            if "box" in wanted and "bubblewrap" not in wanted:
                assert name not in found, name
                values = {reason.partition("[")[2].rstrip("]") for reason in reasons if reason.startswith(f"{name}[")}
                found[name] = _with_values(
                    check, lambda value, out=values: str(value) not in out and concerns(value), once
                )
    assert (missing := {reason.partition("[")[0] for reason in reasons} - found.keys()) == set(), missing
    wanted_of = {name for module in of for name in vars(module)}
    return {name: check for name, check in found.items() if name not in reasons and name in wanted_of}


def _with_values(check: types.FunctionType, keep: Callable[[Any], bool], once: bool) -> Check:
    copy = types.FunctionType(check.__code__, check.__globals__, check.__name__, check.__defaults__, check.__closure__)
    functools.update_wrapper(copy, check)
    del copy.__wrapped__  # type: ignore[attr-defined]  (pytest would look through it)
    marks = [_fewer(mark, keep, once) for mark in getattr(check, "pytestmark", ())]
    copy.pytestmark = marks  # type: ignore[attr-defined]
    return copy


def _fewer(mark: pytest.Mark, keep: Callable[[Any], bool], once: bool) -> pytest.Mark:
    if mark.name != "parametrize":
        return mark
    names, values, *_ = (*mark.args, None)
    options: dict[str, Any] = dict(mark.kwargs)
    values = list(options.pop("argvalues", values))
    ids = options.pop("ids", None)
    ids = list(ids) if isinstance(ids, (list, tuple)) else [None] * len(values)
    kept = [(value, name) for value, name in zip(values, ids, strict=True) if keep(value)]
    kept = kept[-1:] if once else kept
    return pytest.mark.parametrize(names, [value for value, _ in kept], ids=[name for _, name in kept], **options).mark
