"""Class C."""

from securebench.audit.attacks.c_state import carried, checkers, worker
from securebench.audit.attacks.c_state.threats import CLASS, THREATS

ATTACKS = (*carried.ATTACKS, *checkers.ATTACKS, *worker.ATTACKS)

__all__ = ["ATTACKS", "CLASS", "THREATS"]
