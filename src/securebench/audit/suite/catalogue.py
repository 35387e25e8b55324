"""The catalogue as a whole: our own classes, and what installed packages add to it.

Another package adds attacks with an entry point of the group `securebench.attacks` that names a module like ours."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from securebench.audit import attacks
from securebench.audit.suite.attack import Attack, Class, Threat
from securebench.errors import ConfigError

ENTRY_POINTS = "securebench.attacks"


@dataclass(frozen=True, slots=True)
class Catalogue:
    classes: tuple[Class, ...]
    threats: tuple[Threat, ...]
    attacks: tuple[Attack, ...]
    sources: Mapping[str, str] = field(default_factory=dict)  # the file of each attack, as in its repository

    def threat(self, identity: str) -> Threat:
        return next(threat for threat in self.threats if threat.id == identity)

    def chosen(self, wanted: Sequence[str]) -> tuple[Attack, ...]:
        """The attacks whose class, threat or id is among `wanted`; all of them without any. Raises ConfigError."""
        if not wanted:
            return self.attacks
        found = {word: [attack for attack in self.attacks if _means(word, attack)] for word in wanted}
        if missing := [word for word, some in found.items() if not some]:
            raise ConfigError(
                f"no attack is called {', '.join(missing)}; name a class (G), a threat (G05) or an attack (G05/name)"
            )
        return tuple(attack for attack in self.attacks if any(attack in some for some in found.values()))


@cache
def load_catalogue() -> Catalogue:
    """All there is. Raises ConfigError when two entries have one name, or an attack belongs to no threat."""
    classes: list[Class] = []
    threats: list[Threat] = []
    found: list[Attack] = []
    sources: dict[str, str] = {}
    for module in _modules():
        classes += [module.CLASS] if hasattr(module, "CLASS") else []
        threats += getattr(module, "THREATS", ())
        found += getattr(module, "ATTACKS", ())
        sources |= {attack.id: _source(module) for attack in getattr(module, "ATTACKS", ())}
    for name, ids in (("threat", [threat.id for threat in threats]), ("attack", [attack.id for attack in found])):
        if twice := {identity for identity in ids if ids.count(identity) > 1}:
            raise ConfigError(f"the catalogue has each of these {name}s twice: {', '.join(sorted(twice))}")
    known = {threat.id for threat in threats}
    if unknown := {attack.id for attack in found if attack.threat not in known}:
        raise ConfigError(f"these attacks belong to no threat: {', '.join(sorted(unknown))}")
    threats.sort(key=lambda threat: threat.id)
    found.sort(key=lambda attack: attack.threat)
    return Catalogue(tuple(sorted(classes, key=lambda one: one.letter)), tuple(threats), tuple(found), sources)


def _modules() -> Iterator[ModuleType]:
    for info in pkgutil.iter_modules(attacks.__path__, f"{attacks.__name__}."):
        yield import_module(info.name)
    for point in entry_points(group=ENTRY_POINTS):
        yield point.load()


def _source(module: ModuleType) -> str:
    own = module.__name__.startswith(attacks.__name__)
    path = module.__name__.replace(".", "/") + ("/__init__" if hasattr(module, "__path__") else "")
    return f"{'src/' if own else ''}{path}.py"


def _means(word: str, attack: Attack) -> bool:
    return word in (attack.threat[0], attack.threat, attack.id)
