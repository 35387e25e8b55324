"""The table of rules, and the page that is made from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.audit.pack.auditing import audited, complaints

from securebench.audit.pack.rules import GROUPS, RULES, rules_table

ROOT = Path(__file__).parents[4]


def test_the_page_has_the_rules_as_they_are() -> None:
    assert rules_table() in (ROOT / "docs" / "audit-packs.md").read_text()


def test_every_rule_says_what_it_means_and_what_to_do() -> None:
    for rule in RULES.values():
        assert rule.group in GROUPS
        assert rule.meaning.endswith(".")
        assert rule.fix.endswith(".")


@pytest.mark.parametrize("name", ["demo", "starter"])
def test_our_own_packs_are_sound(name: str) -> None:
    report = audited(ROOT / "src" / "securebench" / "data" / name)
    assert complaints(report) == []
    assert report.passed
