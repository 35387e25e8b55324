"""The suite for other people's tests: does a backend that is not ours withstand what ours withstand?

from securebench.audit.suite import conformance

WALLS = conformance.Conformance(MySandbox())

@pytest.mark.parametrize("attack", conformance.attack_ids())
def test_withstands(attack):
    WALLS.check(attack)
"""

from __future__ import annotations

import anyio

from securebench.audit.suite.attack import NotHere
from securebench.audit.suite.catalogue import load_catalogue
from securebench.audit.suite.result import Row, Verdict
from securebench.audit.suite.run import Backend, Player
from securebench.sandboxes.base import HostRoot, Root, Sandbox


class DidNotHold(AssertionError):
    """An attack succeeded, or was not shown to fail; `row` says more."""

    def __init__(self, row: Row) -> None:
        super().__init__(f"{row.attack} on {row.backend}: {row.verdict.value}: {row.detail}")
        self.row = row


def attack_ids(*only: str) -> list[str]:
    """Every attack that meets a sandbox, or those of these classes, threats or names. Raises ConfigError."""
    return [attack.id for attack in load_catalogue().chosen(only) if attack.isolated]


class Conformance:
    """One backend, with a root that holds python3. Plays that attacks share are played once."""

    def __init__(self, sandbox: Sandbox, root: Root | None = None) -> None:
        self._player = Player(Backend(sandbox.name, sandbox, root or HostRoot()))

    def check(self, attack_id: str) -> Row:
        """Play one attack with its twin and its control.

        Raises DidNotHold, ConfigError for an unknown name, and NotHere where the backend lacks what it needs."""
        catalogue = load_catalogue()
        (attack,) = catalogue.chosen([attack_id])
        row = anyio.run(self._player.play, attack, catalogue.threat(attack.threat).title)
        if row.verdict is Verdict.NOT_PLAYED:
            raise NotHere(row.detail)
        if row.verdict is not Verdict.HELD:
            raise DidNotHold(row)
        return row
