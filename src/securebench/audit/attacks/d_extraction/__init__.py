"""Class D."""

from securebench.audit.attacks.d_extraction.attacks import ATTACKS
from securebench.audit.attacks.d_extraction.threats import CLASS, THREATS

__all__ = ["ATTACKS", "CLASS", "THREATS"]
