"""An interval that another SecureBench computed by another method is noted, and nothing else of the summary is let off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.control_runs import constant_run

from securebench.evidence.verify import verify_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Unsealed, so that what is said of the summary stands alone."""
    out = constant_run(tmp_path, "run", "42", attempts=2)
    (out / "seal.json").unlink()
    return out


def said(run: Path, **changes: object) -> tuple[list[str], list[str]]:
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | changes))
    result = verify_run(run, {})
    return [str(one) for one in result.errors if one.file == "summary.json"], [str(one) for one in result.notes]


def test_interval_of_another_method_is_a_note(run: Path) -> None:
    errors, notes = said(run, interval={"low": 0.1, "high": 0.9, "confidence": 0.95})
    assert errors == []
    assert any("computed by another method" in note for note in notes)


def test_interval_of_our_method_is_counted_again(run: Path) -> None:
    interval = json.loads((run / "summary.json").read_text())["interval"]
    [error], _ = said(run, interval=interval | {"low": 0.62})
    assert "interval.low is 0.62; counted from the records" in error


@pytest.mark.parametrize("interval", [None, 1, [], "x"])
def test_interval_that_is_none_is_an_error(run: Path, interval: object) -> None:
    errors, _ = said(run, interval=interval)
    assert any("interval" in error for error in errors)


def test_score_is_counted_again_whatever_the_method(run: Path) -> None:
    errors, _ = said(run, interval={"low": 0.1, "high": 0.9, "confidence": 0.95}, score=0.99)
    assert any("score is 0.99" in error for error in errors)
