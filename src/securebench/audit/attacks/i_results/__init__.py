"""I: the verdict on its way from where it is made to where it is read."""

from __future__ import annotations

from securebench.audit.attacks.i_results import claims, crashes, parsing, tampering, viewers
from securebench.audit.attacks.i_results.threats import CLASS, THREATS

__all__ = ["ATTACKS", "CLASS", "THREATS"]

ATTACKS = (*crashes.ATTACKS, *claims.ATTACKS, *parsing.ATTACKS, *tampering.ATTACKS, *viewers.ATTACKS)
