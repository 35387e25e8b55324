"""The hostile programs, one file per column of the table."""

from __future__ import annotations

from dataclasses import replace

from tests.attacks.python.attack import Attack
from tests.attacks.python.programs import dynamic, files, imports, network, process, resources, tamper

SAMPLE_EVERY = 40

ATTACKS: tuple[Attack, ...] = tuple(
    replace(attack, docker=number % SAMPLE_EVERY == 0)
    for column in (dynamic, process, files, network, imports, tamper, resources)
    for number, attack in enumerate(column.ATTACKS)
)
BY_ID = {attack.id: attack for attack in ATTACKS}
