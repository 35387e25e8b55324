"""What a reference solution answers to drawn calls. It runs in rooms of its own, away from every candidate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from securebench.errors import PackError
from securebench.verifiers.rooms.relay import Conversation

Rooms = Callable[..., Awaitable[Conversation]]


async def answered(
    task_id: str, calls: list[dict[str, Any]], rooms: Rooms, start: Mapping[str, Any], tolerance: float | None
) -> list[dict[str, Any]]:
    """The calls as cases, each with what the reference gave. Raises PackError where it gave nothing that can be
    compared: that is never the candidate's failure."""
    seen = await rooms(start={**start, "style": "values", "cases": calls}, mounts=())
    values = None if seen.report is None else seen.report.get("values")
    if seen.faults or not isinstance(values, list) or len(values) != len(calls):
        why = seen.faults[0].detail if seen.faults else (seen.report or {}).get("pack") or "it does not load"
        raise PackError(f"task {task_id}: the reference solution answers no generated cases: {why}")
    more = {} if tolerance is None else {"tolerance": tolerance}
    return [call | more | {kind: _plain(value, task_id)} for call, (kind, value) in zip(calls, values, strict=True)]


def _plain(value: Any, task_id: str) -> Any:
    """As rows write it: sequences are lists, keys are text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(item, task_id) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _plain(item, task_id) for key, item in value.items()}
    kind = type(value).__name__
    raise PackError(f"task {task_id}: the reference solution gives a {kind}, which generated cases cannot compare")
