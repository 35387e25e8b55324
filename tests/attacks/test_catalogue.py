"""Every attack of the catalogue on the embedded backend: it fails, its honest twin passes, its control succeeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from securebench.audit.suite.attack import Attack
from securebench.audit.suite.catalogue import load_catalogue
from securebench.audit.suite.result import Row, Verdict
from securebench.audit.suite.run import Backend, Player
from securebench.sandboxes.base import HostRoot
from securebench.sandboxes.select import make_sandbox

CATALOGUE = load_catalogue()


class NotShown(Exception):
    """The attack failed, but so did what has to succeed beside it, as can be on a busy machine."""


AT_ONCE = 3
"""An attack mostly waits for its rooms; those that follow it are played meanwhile."""


@pytest.fixture(scope="module")
def play() -> Iterator[Callable[[Attack], Row]]:
    """Plays one attack, in warm rooms: in one event loop for all of them and side by side, as the suite does."""
    sandbox = make_sandbox("bubblewrap")
    capabilities = anyio.run(sandbox.probe)
    if not capabilities.usable:
        reason = capabilities.remedy or "bubblewrap is not usable here"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    backend = Backend(sandbox.name, sandbox, HostRoot())
    player = Player(backend)
    begun: dict[str, Future[Row]] = {}
    done: set[str] = set()

    async def alone(attack: Attack) -> Row:
        remembers_nothing = Player(backend)
        async with remembers_nothing.ready():
            return await remembers_nothing.play(attack)

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(player.ready()):

        def played(attack: Attack) -> Row:
            if attack.id in done:
                return portal.call(alone, attack)
            done.add(attack.id)
            place = CATALOGUE.attacks.index(attack)
            for one in CATALOGUE.attacks[place : place + AT_ONCE]:
                if one.id not in begun:
                    begun[one.id] = portal.start_task_soon(player.play, one)
            return begun[attack.id].result()

        try:
            yield played
        finally:
            for future in begun.values():  # of attacks that another process of the tests plays, or nobody asked for
                future.cancel()
            wait(begun.values())


@pytest.mark.flaky(reruns=1, only_rerun="NotShown")  # and nothing else: an attack that won once has won
@pytest.mark.parametrize("attack", CATALOGUE.attacks, ids=lambda attack: attack.id)
def test_attack_fails_beside_its_twin_and_its_control(play: Callable[[Attack], Row], attack: Attack) -> None:
    row = play(attack)
    if row.verdict in {Verdict.TWIN_FAILED, Verdict.BROKEN}:
        raise NotShown(row.detail)
    assert row.verdict is Verdict.HELD, row.detail


def test_every_threat_is_played_or_says_why_not() -> None:
    played = {attack.threat for attack in CATALOGUE.attacks}
    assert [threat.id for threat in CATALOGUE.threats if (threat.id in played) == bool(threat.not_played)] == []


def test_every_threat_belongs_to_a_class() -> None:
    letters = {one.letter for one in CATALOGUE.classes}
    assert {threat.id[0] for threat in CATALOGUE.threats} <= letters
