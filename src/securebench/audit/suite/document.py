"""docs/attacks.md, made from the catalogue: what we claim, how it is tested, what we do not claim."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator

from securebench.audit.suite.attack import Attack, Class, Play, Threat
from securebench.audit.suite.catalogue import Catalogue

_HEAD = """\
# What is claimed, and how it is tested

<!-- made by scripts/attacks_doc.py from src/securebench/audit/attacks; do not edit -->

An integrity claim that cannot be run again is marketing. What is not marked otherwise is played, on your machine:

```sh
securebench audit --full                  # every attack on every backend of this host
securebench audit --full --only G05       # one class, threat or attack
securebench run --with-audit --config F   # a score that carries the proof
```

An attack is believed to fail only if three things were seen on the same backend: **the attack** ended as an ordinary
failure; **its honest twin**, played the same way, reached its goal, because a wall that stops everybody proves nothing;
and **its control**, the same attack against something made weak on purpose, succeeded, because an attack that cannot
even beat that proves nothing either. The verdict of a row is `held`, or `succeeded` (it reached its goal), `fault` (it
provoked a failure of ours), `twin_failed`, `broken` (it does not beat its control), or `not_played` (the backend lacks
what it needs).

How to add an attack, or to play them on a backend of your own: [adding-attacks.md](adding-attacks.md).

## What is not claimed at all

- That nobody finds an attack that is not here. The suite shows that these fail, and that they were tried in earnest.
- That the host's kernel, container engine or hardware has no hole. `runsc` and virtual machines make one less likely.
- That whoever runs a benchmark is honest. Who controls the machine controls what it signs; a signed audit says what was
  seen, and by whose key.
- That a pack measures what its name says. `securebench audit PACK` attacks packs.
"""


def document(catalogue: Catalogue) -> str:
    """The whole file."""
    return "\n".join([_HEAD, *_overview(catalogue), *_classes(catalogue)]).rstrip() + "\n"


def _overview(catalogue: Catalogue) -> Iterator[str]:
    yield "## Classes"
    yield ""
    yield "| Class | Threats | Attacks | Of our own invention |"
    yield "|---|---|---|---|"
    for one in catalogue.classes:
        threats = [threat for threat in catalogue.threats if threat.id.startswith(one.letter)]
        attacks = [attack for attack in catalogue.attacks if attack.threat.startswith(one.letter)]
        invented = sum(threat.invented for threat in threats)
        yield f"| [{one.letter}. {_text(one.title)}](#{_anchor(one)}) | {len(threats)} | {len(attacks)} | {invented} |"
    numbers = (len(catalogue.threats), len(catalogue.attacks), sum(threat.invented for threat in catalogue.threats))
    yield "| **all** | " + " | ".join(f"**{number}**" for number in numbers) + " |"
    yield ""


def _classes(catalogue: Catalogue) -> Iterator[str]:
    for one in catalogue.classes:
        yield f"## {one.letter}. {_text(one.title)}"
        yield ""
        yield _text(one.principle)
        yield ""
        for threat in catalogue.threats:
            if threat.id.startswith(one.letter):
                yield from _threat(threat, [attack for attack in catalogue.attacks if attack.threat == threat.id])


def _threat(threat: Threat, attacks: list[Attack]) -> Iterator[str]:
    yield f"### {threat.id} {_text(threat.title)}"
    yield ""
    yield _text(threat.claim)
    yield ""
    where = f"Families: {', '.join(threat.families)}. Acts while: {', '.join(threat.phases)}."
    yield where + (" Found by attacking our own code." if threat.invented else "")
    yield ""
    if threat.not_played:
        yield f"Not played: {_text(threat.not_played)}"
        yield ""
    for attack in attacks:
        alone = "" if attack.isolated else " (meets no sandbox)"
        yield f"- `{attack.name}`: {_text(attack.how)}{alone}"
    if attacks:
        yield ""
        yield from _plays(attacks)
        yield ""
    if threat.not_claimed:
        yield f"Not claimed: {_text(threat.not_claimed)}"
        yield ""


def _plays(attacks: list[Attack]) -> Iterator[str]:
    played = _all(attack.attack for attack in attacks)
    twin = _all(attack.honest for attack in attacks)
    control = _all(attack.control for attack in attacks)
    yield f"Played as: {played}  "
    yield f"Twin: {'the same, honestly.' if twin == played else twin}  "
    yield f"Control: {'the same, against something made weak for it.' if control == played else control}"


def _all(plays: Iterable[Play]) -> str:
    return " ".join(dict.fromkeys(_described(type(play)) for play in plays))


def _described(kind: type) -> str:
    """The first sentence of what a play says of itself."""
    words = " ".join((inspect.getdoc(kind) or kind.__name__).split("\n\n")[0].split())
    end = words.find(". ")
    return _text(words if end < 0 else words[: end + 1])


def _text(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "\\|")


def _anchor(one: Class) -> str:
    """As code hosts make it of a heading."""
    words = f"{one.letter} {one.title}".lower()
    return "".join(char for char in words if char.isalnum() or char in " -").replace(" ", "-")
