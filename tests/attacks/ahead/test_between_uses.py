"""A candidate that leaves something for the next one: files, processes, variables, listeners, used-up numbers.

Each use is a hit, a sandbox that was prepared ahead. The controls are pools that hand out used ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import pytest
from tests.attacks.ahead.pools import Uses, executing, reusing
from tests.conformance.sandbox.box import PYTHON
from tests.docker.conftest import sandbox as containers  # noqa: F401 — a fixture is used by name
from tests.docker.engine import Imaged
from tests.e2e.workbench import need_bubblewrap

from securebench.sandboxes.ahead import prepared_ahead
from securebench.sandboxes.base import Command, Limits, Network, Sandbox, SandboxSpec, Scratch
from securebench.sandboxes.bubblewrap import BubblewrapSandbox

SECRET = "the-first-use-was-here"
SPEC = SandboxSpec(mounts=(Scratch("/work"),), network=Network.LOOPBACK, limits=Limits(wall_seconds=60))
_LISTEN = (
    "import os, socket, time\n"
    "s = socket.create_server(('127.0.0.1', 5055)); u = socket.socket(socket.AF_UNIX); u.bind('\\0left')\n"
    "u.listen()\n"
    "if os.fork() == 0:\n"
    "    os.setsid(); [os.close(n) for n in (0, 1, 2)]; time.sleep(300)\n"
)
_CONNECT = (
    "import socket\n"
    "for family, where in ((socket.AF_INET, ('127.0.0.1', 5055)), (socket.AF_UNIX, '\\0left')):\n"
    "    try: socket.socket(family).connect(where); print('reached')\n"
    "    except OSError: pass\n"
)
_STAY = "setsid sleep 300 <&- >&- 2>&- &"

ATTACKS = {
    "files": (f"echo {SECRET} > /work/left; echo {SECRET} > /tmp/.left", "cat /work/* /tmp/.left", SECRET),
    "processes": (_STAY, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", "sleep 300"),
    "environment": (_STAY, "cat /proc/[0-9]*/environ | tr '\\0' '\\n'", SECRET),
    "network": (f'{PYTHON} -I -c "$PROGRAM"', f'{PYTHON} -I -c "$PROGRAM"', "reached"),
    "numbers of processes": ("for i in $(seq 60); do sh -c : ; done", "[ $$ -lt 50 ] || echo used", "used"),
}

Pool = Callable[[], AbstractAsyncContextManager[Uses]]


async def _seen(pool: Pool, attack: str) -> str:
    """What the second use finds of what the first one left."""
    leave, look, _ = ATTACKS[attack]
    async with pool() as use:
        for _ in range(3):  # an honest one first, so that later ones are handed out ready
            await use(SPEC, Command(("/bin/true",)))
        await use(SPEC, Command(("/bin/sh", "-c", leave), env={"LEFT": SECRET, "PROGRAM": _LISTEN}))
        return await use(SPEC, Command(("/bin/sh", "-c", look), env={"PROGRAM": _CONNECT}))


@asynccontextmanager
async def _ahead(sandbox: Sandbox) -> AsyncIterator[Uses]:
    async with prepared_ahead(sandbox) as ahead:

        async def use(spec: SandboxSpec, command: Command) -> str:
            await ahead.prepare(spec)
            before = ahead.counts.hits
            async with ahead.open(spec) as session:
                found = (await session.run(command)).stdout.data.decode()
            assert ahead.counts.hits == before + 1, "prepared ahead"
            return found

        yield use  # type: ignore[misc]


@pytest.fixture
def embedded() -> Sandbox:
    need_bubblewrap()
    return BubblewrapSandbox()


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_left_for_the_next_use(embedded: Sandbox, attack: str) -> None:
    assert ATTACKS[attack][2] not in anyio.run(_seen, lambda: _ahead(embedded), attack)
    assert ATTACKS[attack][2] in anyio.run(_seen, lambda: reusing(embedded), attack), "positive control: used again"


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_left_for_the_next_container(containers: Imaged, attack: str) -> None:
    assert ATTACKS[attack][2] not in anyio.run(_seen, lambda: _ahead(containers), attack)
    assert ATTACKS[attack][2] in anyio.run(_seen, executing, attack), "positive control: used again"


def test_nobody_gets_what_another_has(embedded: Sandbox) -> None:
    """Many ask at once for what was prepared: each finds its own scratch empty, and nobody sees another's."""

    async def main() -> tuple[list[list[str]], int]:
        found: list[list[str]] = []
        turn = 0
        async with prepared_ahead(embedded, most=4) as ahead:

            async def one(number: int) -> None:
                async with ahead.open(SPEC) as session:
                    script = f"touch /work/{number}; sleep 0.1; ls /work"
                    found.append((await session.run(Command(("/bin/sh", "-c", script)))).stdout.data.decode().split())

            while turn < 4 or (turn < 40 and ahead.counts.hits <= 4):  # a busy machine prepares them slowly
                async with anyio.create_task_group() as tasks:
                    for number in range(6):
                        tasks.start_soon(one, 10 * turn + number)
                turn += 1
            assert ahead.counts.hits > 4
            return found, turn

    found, turns = anyio.run(main)
    assert sorted(found) == sorted([str(10 * turn + number)] for turn in range(turns) for number in range(6))
