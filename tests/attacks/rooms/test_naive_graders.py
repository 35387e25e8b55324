"""The graders that the cheats of class G are played against know right from wrong where nobody cheats."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tests.attacks.rooms.judging import bubblewrap

from securebench.audit.attacks import g_forging, h_oracles
from securebench.audit.attacks.g_forging.tasks import ASSERTS, HONEST, WRONG
from securebench.audit.suite.attack import End, Ground
from securebench.audit.weak.grader import Fools, FoolsRelay
from securebench.sandboxes.base import HostRoot

GRADERS = ("exit", "marker", "unittest", "manager", "token_env", "token_stdin", "pytest", "in_process", "pickle", "rpc")
GRADERS += ("filtered", "filtered_tree", "in_file", "in_argument", "each_assert")


@pytest.mark.parametrize(("source", "end"), [(HONEST, End.REACHED), (WRONG, End.MISSED)])
def test_they_know_right_from_wrong(source: str, end: End, tmp_path: Path) -> None:
    ground = Ground("bubblewrap", bubblewrap(), HostRoot(), tmp_path)
    assert anyio.run(FoolsRelay(source).on, ground).end is end
    seen = anyio.run(Fools(source, GRADERS, ASSERTS).on, ground)
    assert seen.end is end
    if end is End.MISSED:
        assert all(name in seen.detail for name in GRADERS), seen.detail


def test_each_of_them_is_fooled_by_somebody() -> None:
    controls = [attack.control for attack in (*g_forging.ATTACKS, *h_oracles.ATTACKS)]
    fooled = {name for control in controls if isinstance(control, Fools) for name in control.graders}
    assert fooled == {*GRADERS, "collected", "in_directory"}
