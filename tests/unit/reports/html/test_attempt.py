"""One attempt as a piece of a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from securebench.reports.html.attempt import attempt
from securebench.reports.html.nodes import as_html
from securebench.reports.runs import load_run
from securebench.reports.spreads import seconds_of
from securebench.testing.synthetic_run import SyntheticRun, write_run


def test_its_time_is_that_of_the_tables(tmp_path: Path) -> None:
    row = load_run(write_run(tmp_path / "run", SyntheticRun(tasks=1, attempts=1))).rows[0]
    slow = replace(row, produce_seconds=1.0, verify_seconds=3.0)
    assert seconds_of(slow) == 4.0
    assert "4 s" in as_html(attempt(slow, None, unfold=False))
    assert "3 s" in as_html(attempt(replace(slow, produce_seconds=None), None, unfold=False))
