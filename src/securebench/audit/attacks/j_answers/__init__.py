"""Class J: what is asked in words, and answered in words that were not meant."""

from __future__ import annotations

from securebench.audit.attacks.j_answers import choice, free, inside, packs, short
from securebench.audit.attacks.j_answers.threats import CLASS, THREATS

ATTACKS = (*choice.ATTACKS, *short.ATTACKS, *free.ATTACKS, *inside.ATTACKS, *packs.ATTACKS)
__all__ = ["ATTACKS", "CLASS", "THREATS"]
