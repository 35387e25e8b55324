"""Declarative cases: one call each, and what must come of it."""

from __future__ import annotations

import math
import random

from securebench.verifiers.rooms.inside.record import PackBroken, Recorder
from securebench.verifiers.rooms.inside.remote import Link, Remote

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any, Callable

    Test = Callable[[], Any]


def run_cases(start: dict[str, Any], link: Link, recorder: Recorder) -> None:
    """Every case once, in an order of the run's seed."""
    cases, entry = start["cases"], start["entry"]
    if entry is None:
        raise PackBroken("cases need input.entry_point")
    tests = [_test(link, entry, case) for case in cases]
    order = list(range(len(tests)))
    random.Random(start["seed"]).shuffle(order)
    recorder.plan(len(tests))
    for index in order:
        recorder.run(index, tests[index])


def values_of(start: dict[str, Any], link: Link) -> list[list[Any]]:
    """What every call gives, for a solution whose word counts: a value, or the name of an exception."""
    found: list[list[Any]] = []
    link.may_stop = True
    for case in start["cases"]:
        function = link.request("entry", start["entry"])
        try:
            result = function(*_copy(case["args"]), **_copy(case["kwargs"]))
        except (Exception, SystemExit) as error:
            found.append(["raises", type(error).__name__])
            continue
        if isinstance(result, Remote):
            raise PackBroken("the reference solution gives a value that cannot leave its process")
        found.append(["expected", result])
    return found


def _test(link: Link, entry: str, case: dict[str, Any]) -> Test:
    predicate = None
    if "predicate" in case:
        try:
            predicate = compile(case["predicate"], "predicate", "eval", dont_inherit=True)
        except (SyntaxError, ValueError):
            raise PackBroken("a predicate is no expression") from None

    def test() -> None:
        args, kwargs = case.get("args", []), case.get("kwargs", {})
        function = link.request("entry", entry)
        link.may_stop = "raises" in case
        if "raises" in case:
            assert _raised(function, args, kwargs, case["raises"]), "another outcome"
            return
        result = function(*_copy(args), **_copy(kwargs))
        if predicate is not None:
            values = {"result": result, "args": _copy(args), "kwargs": _copy(kwargs), "math": math}
            assert eval(predicate, values) is True, "predicate"
        else:
            assert same(result, case["expected"], case.get("tolerance")), "another value"

    return test


def _raised(function: Any, args: Any, kwargs: Any, name: str) -> bool:
    try:
        function(*_copy(args), **_copy(kwargs))
    except (Exception, SystemExit) as error:
        return any(base.__name__ == name for base in type(error).__mro__ if base is not object)
    return False


def _copy(value: Any) -> Any:
    """A call that changes its arguments changes its own."""
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


def same(found: Any, expected: Any, tolerance: Any) -> bool:
    """Whether a value is the one in the row. Total; a truth value is no number, and an opaque value is nothing.

    JSON has one kind of sequence, so a tuple may stand for a list."""
    if isinstance(found, Remote):
        return False
    if isinstance(expected, bool) or isinstance(found, bool) or expected is None or found is None:
        return found is expected
    if isinstance(expected, (int, float)):
        return type(found) in (int, float) and _close(found, expected, tolerance)
    if isinstance(expected, str):
        return type(found) is str and found == expected
    if isinstance(expected, list):
        if type(found) not in (list, tuple) or len(found) != len(expected):
            return False
        return all(same(found[index], expected[index], tolerance) for index in range(len(expected)))
    if type(found) is not dict or len(found) != len(expected):
        return False
    return all(type(key) is str and key in expected and same(found[key], expected[key], tolerance) for key in found)


def _close(found: Any, expected: Any, tolerance: Any) -> bool:
    """By the expected number's size, not the larger one's: a found one must not bring its own tolerance."""
    if tolerance is None:
        return bool(found == expected)
    try:
        return math.isfinite(found) and bool(abs(found - expected) <= tolerance * max(1.0, abs(expected)))
    except OverflowError:
        return bool(found == expected)
