"""Verdicts forged in the process that a suite shares with the repository: kinds of class G, played on repositories."""

from __future__ import annotations

from securebench.audit.attacks.f_test_runner.cheats import IN_PROCESS

ATTACKS = tuple(attack for cheat in IN_PROCESS for attack in cheat.attacks())
