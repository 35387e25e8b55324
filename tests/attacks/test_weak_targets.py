"""What is weak is beaten by the attack, and not by anything: who only has a mistake in it, or says nothing hostile, does
not reach a goal there. Else an attack that no longer works would still be taken for one."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tests.attacks.rooms.judging import bubblewrap

from securebench.audit.attacks.a_leakage import programs
from securebench.audit.plays.agent import Look
from securebench.audit.plays.agent_pack import Markers
from securebench.audit.plays.judge import WRONG
from securebench.audit.suite.attack import End, Ground, Play
from securebench.audit.weak import agent as weak
from securebench.audit.weak.grader import FoolsRelay
from securebench.audit.weak.judge import WeaklyJudged
from securebench.audit.weak.record_counting import OnlyAnswered, OnlyFinished
from securebench.sandboxes.base import HostRoot
from securebench.testing import scripted_judge as models


def _nothing(_pack: Path, _marks: Markers) -> None:
    """A pack that is in order."""


TARGETS: dict[str, Play] = {
    "relay-mistake-when-loaded": FoolsRelay("raise RuntimeError('broken')"),
    "relay-mistake-when-called": FoolsRelay("def sq(xs): return undefined"),
    "counting-mistake": OnlyFinished("import no_such_module"),
    "counting-syntax": OnlyFinished("def"),
    "answering-mistake": OnlyAnswered("def f(x): return undefined"),
    "model-that-obeys": WeaklyJudged(models.gullible, (WRONG,)),
    "model-that-repeats": WeaklyJudged(models.parrot, (WRONG,)),
    "model-that-quotes": WeaklyJudged(models.quoting, (WRONG,)),
    "model-that-trusts-fences": WeaklyJudged(models.trusting_fences, (WRONG,)),
    "paths-in-order": Look(programs.READ_EVERYTHING, weak=weak.FollowsEveryPath(_nothing)),
    "repository-in-order": Look(programs.READ_EVERYTHING, weak=weak.copies_the_repository_whole),
}


@pytest.mark.parametrize("play", TARGETS.values(), ids=TARGETS)
def test_is_not_beaten_by_nothing(play: Play, tmp_path: Path) -> None:
    seen = anyio.run(play.on, Ground("bubblewrap", bubblewrap(), HostRoot(), tmp_path))
    assert seen.end is End.MISSED, seen.detail
