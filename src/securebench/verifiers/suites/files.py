"""The one file that runs a suite beside candidate code, put together from our own sources."""

from __future__ import annotations

from functools import cache
from importlib import resources

_OURS = "from securebench.verifiers.suites.inside.reporter import make_reporter, read_job\n"


@cache
def suite_file(kind: str) -> bytes:
    """Self-contained source for `pytest` or `unittest`: standard library only."""
    inside = resources.files("securebench.verifiers.suites.inside")
    reporter = inside.joinpath("reporter.py").read_text("utf-8")
    suite = inside.joinpath(f"{kind}_suite.py").read_text("utf-8")
    if _OURS not in suite:
        raise AssertionError(f"{kind}_suite.py no longer imports the reporter where it is taken out")
    return (reporter + suite.replace(_OURS, "")).encode()
