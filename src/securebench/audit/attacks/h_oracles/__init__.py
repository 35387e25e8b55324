"""Class H: what the judged could learn, and whom it could tell."""

from __future__ import annotations

from securebench.audit.attacks.h_oracles import carried, gold, replies, seeds
from securebench.audit.attacks.h_oracles.rows import CLASS, THREATS

__all__ = ["ATTACKS", "CLASS", "THREATS"]

ATTACKS = (*gold.ATTACKS, *seeds.ATTACKS, *carried.ATTACKS, *replies.ATTACKS)
