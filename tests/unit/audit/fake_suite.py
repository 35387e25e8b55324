"""A catalogue of plays that end as they are told, without a sandbox: what is around the catalogue is tested with it."""

from __future__ import annotations

from dataclasses import dataclass

from securebench.audit.suite.attack import Attack, Class, End, Ground, NotHere, Phase, Play, Seen, Threat
from securebench.audit.suite.catalogue import Catalogue

HOSTILE = '<script>alert("1")</script>\x1b[31m\u202egnp.exe\x00\ud800 {{ 7*7 }} </pre></style>'


@dataclass(frozen=True, slots=True)
class Ends:
    """A play that ends like this."""

    end: End
    detail: str = "as told"
    reason: str = ""

    async def on(self, ground: Ground) -> Seen:
        assert ground.directory.is_dir()
        return Seen(self.end, self.detail, self.reason)


@dataclass(frozen=True, slots=True)
class Lacks:
    async def on(self, ground: Ground) -> Seen:
        raise NotHere("the image has no git")


GOOD, STOPPED = Ends(End.REACHED), Ends(End.MISSED, reason="wrong_answer")


def attack(name: str, play: Play = STOPPED, *, threat: str = "X01", isolated: bool = True) -> Attack:
    return Attack(threat, name, "Tries it.", play, honest=GOOD, control=GOOD, isolated=isolated)


HELD = (attack("plain"), attack("other"), attack("apart", threat="X02", isolated=False))
SUCCEEDS = attack("wins", Ends(End.REACHED, HOSTILE))
MISSING = attack("needs-git", Lacks())


def catalogue(*attacks: Attack) -> Catalogue:
    families, phases = ("short_answer",), (Phase.VERIFY,)
    threats = (
        Threat("X01", "A thing to try", families, phases, "It never works.", not_claimed="That nothing else works."),
        Threat("X02", "Another thing", families, phases, "Nor does this."),
        Threat("X03", "Not here", families, phases, "Nobody can.", not_played="There is no family it applies to."),
    )
    sources = {one.id: "src/x_things.py" for one in attacks}
    return Catalogue((Class("X", "Things", "Do nothing of the kind."),), threats, attacks, sources)
