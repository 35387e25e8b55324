"""Memory is given to no more attempts than it suffices for, in the order they asked, and nobody waits for ever."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tests.e2e.workbench import question
from tests.unit.engine.world import World

from securebench.candidates.extraction import artifact_for
from securebench.engine.admission import Memory
from securebench.environment import TaskEnvironment
from securebench.harnesses.base import ProducerRequest, Production


class Hungry:
    """Needs what its task may use, and counts how many of its kind work at the same time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.enough = seconds, 0  # so many at once need not go on
        self.used = self.most_used = self.most_at_once = self.at_once = 0
        self.order: list[str] = []

    def memory(self, environment: TaskEnvironment) -> int:
        return environment.memory or 0

    async def produce(self, request: ProducerRequest) -> Production:
        size = self.memory(request.environment)
        self.order.append(request.task_id)
        self.used, self.at_once = self.used + size, self.at_once + 1
        self.most_used, self.most_at_once = max(self.most_used, self.used), max(self.most_at_once, self.at_once)
        with anyio.move_on_after(self.seconds):
            while self.most_at_once != self.enough:
                await anyio.sleep(0.01)
        self.used, self.at_once = self.used - size, self.at_once - 1
        return Production(artifact_for(request.task_id, request.kind, "42", "script"))


def _world(directory: Path, sizes: list[int]) -> tuple[World, Hungry]:
    rows = [
        question(number, environment={"resources": {"memory": size * 2**20}} if size else {})
        for number, size in enumerate(sizes)
    ]
    producer = Hungry(0.02)
    return World(directory, rows, producer), producer


def _run(world: World, memory: int, producers: int = 8) -> None:
    async def main() -> None:
        with world.lanes(producers, 2, memory * 2**20) as lanes:
            with anyio.fail_after(120):
                await lanes.run()

    anyio.run(main)


def test_tasks_that_need_more_than_half_never_run_two_at_once(tmp_path: Path) -> None:
    world, producer = _world(tmp_path, [600] * 4)
    _run(world, 1000)
    assert (producer.most_at_once, producer.most_used) == (1, 600 * 2**20)
    assert len(world.records()) == 4


def test_with_memory_for_all_they_do_run_at_once(tmp_path: Path) -> None:
    world, producer = _world(tmp_path, [600] * 4)
    producer.seconds, producer.enough = 20, 4
    _run(world, 2400)
    assert producer.most_at_once == 4


def test_small_ones_do_not_starve_a_large_one(tmp_path: Path) -> None:
    world, producer = _world(tmp_path, [100, 100, 100, 900, *[100] * 40])
    _run(world, 1000)
    assert producer.order.index("t3") < 12
    assert producer.most_used <= 1000 * 2**20
    assert len(world.records()) == 44


def test_what_needs_more_than_there_is_runs_alone(tmp_path: Path) -> None:
    world, producer = _world(tmp_path, [100, 5000, 100, 5000])
    _run(world, 1000)
    assert producer.most_at_once <= 2
    assert len(world.records()) == 4


def test_who_needs_nothing_does_not_wait(tmp_path: Path) -> None:
    async def main() -> None:
        memory = Memory(10)
        async with memory.hold(10), anyio.create_task_group() as tasks:
            waiting = anyio.Event()

            async def large() -> None:
                waiting.set()
                async with memory.hold(10):
                    pass

            tasks.start_soon(large)
            await waiting.wait()
            with anyio.fail_after(30):
                async with memory.hold(0):
                    pass
            tasks.cancel_scope.cancel()

    anyio.run(main)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_who_stops_waiting_leaves_no_gap_in_the_queue(victim: int) -> None:
    async def main() -> list[int]:
        memory, came = Memory(10), []
        scopes = [anyio.CancelScope() for _ in range(3)]

        async def wait(number: int) -> None:
            with scopes[number]:
                async with memory.hold(7):
                    came.append(number)

        async with anyio.create_task_group() as tasks, memory.hold(7):
            for number in range(3):
                tasks.start_soon(wait, number)
                await anyio.wait_all_tasks_blocked()
            scopes[victim].cancel()
            await anyio.wait_all_tasks_blocked()
        return came

    with_all = [0, 1, 2]
    with_all.remove(victim)
    assert anyio.run(main) == with_all
