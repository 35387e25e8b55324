"""Every attack of the catalogue on the embedded backend: it fails, its honest twin passes, its control succeeds."""

from __future__ import annotations

import os
from functools import cache

import anyio
import pytest

from securebench.audit.suite.attack import Attack
from securebench.audit.suite.catalogue import load_catalogue
from securebench.audit.suite.result import Verdict
from securebench.audit.suite.run import Backend, Player
from securebench.sandboxes.base import HostRoot
from securebench.sandboxes.select import make_sandbox

CATALOGUE = load_catalogue()


@cache
def _player() -> Player:
    sandbox = make_sandbox("bubblewrap")
    capabilities = anyio.run(sandbox.probe)
    if not capabilities.usable:
        reason = capabilities.remedy or "bubblewrap is not usable here"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    return Player(Backend(sandbox.name, sandbox, HostRoot()))


@pytest.mark.parametrize("attack", CATALOGUE.attacks, ids=lambda attack: attack.id)
def test_attack_fails_beside_its_twin_and_its_control(attack: Attack) -> None:
    row = anyio.run(_player().play, attack)
    assert row.verdict is Verdict.HELD, row.detail


def test_every_threat_is_played_or_says_why_not() -> None:
    played = {attack.threat for attack in CATALOGUE.attacks}
    assert [threat.id for threat in CATALOGUE.threats if (threat.id in played) == bool(threat.not_played)] == []


def test_every_threat_belongs_to_a_class() -> None:
    letters = {one.letter for one in CATALOGUE.classes}
    assert {threat.id[0] for threat in CATALOGUE.threats} <= letters
