"""One Chromium for the tests of a file.

While it lives, Playwright keeps an event loop in this thread, in which no run can be made; `aside` makes it in another,
and what is made here is made before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import ARGUMENTS, need_chromium
from tests.gallery import chat_run, repository_run

from securebench.reports.content import content_of
from securebench.reports.html.report_page import report_page
from securebench.reports.runs import load_runs
from securebench.testing.synthetic_run import SyntheticRun, write_run


@pytest.fixture(scope="module")
def browser(pages: dict[str, Path]) -> Iterator[Any]:
    executable = need_chromium()
    from playwright.sync_api import sync_playwright

    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=[*ARGUMENTS, *root], timeout=180_000)
        yield chromium
        chromium.close()


def write_page(path: Path, *runs: Path) -> Path:
    path.write_text(report_page([content_of(run) for run in load_runs(runs)]))
    return path


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Real ones, and one that is large enough to have pages."""
    place = tmp_path_factory.mktemp("runs")
    many = SyntheticRun(run_id="many", tasks=240, transcripts=0.3, faults=0.02)
    return {"asked": chat_run(place), "worked": repository_run(place), "many": write_run(place / "many", many)}


@pytest.fixture(scope="session")
def pages(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of each run, and of all of them."""
    place = tmp_path_factory.mktemp("pages")
    made = {name: write_page(place / f"{name}.html", run) for name, run in runs.items()}
    return made | {"all": write_page(place / "all.html", *runs.values())}
