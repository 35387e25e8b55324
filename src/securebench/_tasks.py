"""Tasks that run beside a block of code and are nobody else's business."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from securebench.errors import InfrastructureError


@asynccontextmanager
async def one_error() -> AsyncIterator[None]:
    """A caller of ours sees the one error there was, not the group that task groups make of it."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] if len(group.exceptions) == 1 else group from None


@asynccontextmanager
async def fault_first() -> AsyncIterator[None]:
    """As `one_error`; of several the host's fault, where there is one: the others came of it."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise _fault(group) or (group.exceptions[0] if len(group.exceptions) == 1 else group) from None


def _fault(error: BaseException) -> InfrastructureError | None:
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_fault, error.exceptions)), None)
    return error if isinstance(error, InfrastructureError) else None


@asynccontextmanager
async def side_tasks() -> AsyncIterator[TaskGroup]:
    """A task group whose tasks are cancelled when the block is done."""
    async with one_error(), anyio.create_task_group() as tasks:
        yield tasks
        tasks.cancel_scope.cancel()
