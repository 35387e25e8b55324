"""Moves bytes between two sides until both have finished, a budget is spent, or nothing moves any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from securebench.egress.allowance import Flow
from securebench.egress.decisions import Reason, Refused
from securebench.egress.wire import Wire


async def race(flow: Flow, *jobs: Callable[[], Awaitable[None]]) -> Reason:
    """Run jobs side by side until all are done, or one fails, or the flow is idle for too long; says which."""
    reason = Reason.CLOSED
    left = len(jobs)

    async with anyio.create_task_group() as tasks:

        def end(why: Reason) -> None:
            nonlocal reason
            if not tasks.cancel_scope.cancel_called:
                reason = why
                tasks.cancel_scope.cancel()

        async def work(job: Callable[[], Awaitable[None]]) -> None:
            nonlocal left
            try:
                await job()
            except Refused as refused:
                end(refused.reason)
            except OSError:
                end(Reason.RESET)
            left -= 1
            if left == 0:
                end(Reason.CLOSED)

        for job in jobs:
            tasks.start_soon(work, job)
        await flow.idle()
        end(Reason.IDLE)
    return reason


async def splice(client: Wire, upstream: Wire, flow: Flow) -> Reason:
    """A tunnel: either side may finish first, the other may go on."""

    async def pump(source: Wire, sink: Wire, count: Callable[[int], None]) -> None:
        while data := await source.receive():
            count(len(data))
            await sink.send(data)
        flow.half_closed = True
        sink.finish()

    return await race(
        flow,
        lambda: pump(client, upstream, flow.sends),
        lambda: pump(upstream, client, flow.returns),
    )
