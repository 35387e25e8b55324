"""What goes wrong with one page stays with it."""

from __future__ import annotations

from pathlib import Path
from typing import Never

import pytest

from securebench.reports.view.door import Door, Refusal
from securebench.reports.view.library import Library
from securebench.reports.view.rendering import Renderer
from securebench.reports.view.server import _Viewer
from securebench.testing.synthetic_run import SyntheticRun, write_run


def test_a_page_on_which_we_fail_is_told_of_and_ends_nothing(tmp_path: Path) -> None:
    def clock() -> Never:
        raise ArithmeticError("of ours")

    write_run(tmp_path / "a", SyntheticRun(tasks=1))
    viewer = _Viewer(Library(tmp_path, clock), Door("token", 1), {})
    with pytest.raises(Refusal, match=r"a fault of ours.*of ours") as refused:
        viewer._made(("",))
    assert refused.value.status == 500


def test_a_page_is_made_again_when_a_stored_candidate_changed(tmp_path: Path) -> None:
    """It says whether the run is what was sealed, and so must not outlive what it looked at."""
    run = write_run(tmp_path / "a", SyntheticRun(tasks=4))
    renderer = Renderer({})
    assert b"Consistent" in renderer.report(run)
    stored = next(path for path in sorted((run / "candidates").rglob("*")) if path.is_file())
    stored.chmod(0o644)
    stored.write_bytes(stored.read_bytes() + b"changed")
    assert b"Not verified" in renderer.report(run)
