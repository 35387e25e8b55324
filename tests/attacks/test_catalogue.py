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


NOTHING_SHOWN = {Verdict.TWIN_FAILED, Verdict.BROKEN}
"""The attack failed, but so did what has to succeed beside it: on a busy machine either can run out of time. Both are
tried once more; an attack that won is not."""
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
    player = Player(Backend(sandbox.name, sandbox, HostRoot()))
    begun: dict[str, Future[Row]] = {}
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(player.ready()):

        def played(attack: Attack) -> Row:
            place = CATALOGUE.attacks.index(attack)
            for one in CATALOGUE.attacks[place : place + AT_ONCE]:
                if one.id not in begun:
                    begun[one.id] = portal.start_task_soon(player.play, one)
            row = begun[attack.id].result()
            return portal.call(player.play, attack) if row.verdict in NOTHING_SHOWN else row

        try:
            yield played
        finally:
            for future in begun.values():  # of attacks that another process of the tests plays, or nobody asked for
                future.cancel()
            wait(begun.values())


@pytest.mark.parametrize("attack", CATALOGUE.attacks, ids=lambda attack: attack.id)
def test_attack_fails_beside_its_twin_and_its_control(play: Callable[[Attack], Row], attack: Attack) -> None:
    row = play(attack)
    assert row.verdict is Verdict.HELD, row.detail


def test_every_threat_is_played_or_says_why_not() -> None:
    played = {attack.threat for attack in CATALOGUE.attacks}
    assert [threat.id for threat in CATALOGUE.threats if (threat.id in played) == bool(threat.not_played)] == []


def test_every_threat_belongs_to_a_class() -> None:
    letters = {one.letter for one in CATALOGUE.classes}
    assert {threat.id[0] for threat in CATALOGUE.threats} <= letters
