"""The page of a comparison in a real browser: it says what it should, asks nobody for anything, and nothing that
strangers named their tasks does anything on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import aside, watched
from tests.browser.layout import crowded
from tests.control_runs import constant_run, write_control_pack
from tests.hostile_run import hostile_run

from securebench.reports.compare.comparison import compare_runs
from securebench.reports.compare.page import comparison_page
from securebench.reports.runs import load_runs
from securebench.testing.synthetic_run import SyntheticRun, write_run


def write_comparison(path: Path, *runs: Path) -> Path:
    path.write_text(comparison_page(compare_runs(load_runs(runs))))
    return path


@pytest.fixture(scope="module")
def compared(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    def make() -> dict[str, Path]:
        place = tmp_path_factory.mktemp("compared")
        pack = write_control_pack(place / "pack")
        answers = [constant_run(place, f"answers-{n}", str(n), pack=pack) for n in (42, 43, 7)]
        hostile = [hostile_run(place / "h1", "h1"), hostile_run(place / "h2", "h2", better=True)]
        kinds = (("agent-small", 11, 1.0, 0.0), ("agent-large", 12, 1.1, 0.02), ("agent-new", 13, 1.6, 0.0))
        several = [
            write_run(place / name, SyntheticRun(run_id=name, tasks=240, seed=seed, skill=skill, faults=faults))
            for name, seed, skill, faults in kinds
        ]
        return {
            "several": write_comparison(place / "several.html", *several),
            "plain": write_comparison(place / "plain.html", *answers),
            "hostile": write_comparison(place / "hostile.html", *hostile),
        }

    return aside(make)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_shows_scores_differences_and_flips(browser: Any, compared: dict[str, Path], scheme: str) -> None:
    with watched(browser, color_scheme=scheme) as seen:
        page = seen.open(compared["plain"], ready=False).page
        assert page.locator("h1").inner_text() == "Comparison of 3 runs"
        assert page.locator("h2").all_inner_texts()[1] == "answers-43 against answers-42"
        assert page.get_by_text("21.4 points less, which chance can explain").count() == 1
        assert page.get_by_text("7 tasks flipped").is_visible()
        assert page.locator("svg.plot circle.dot").count() == 5  # three scores and two differences
        assert seen.quiet


def test_page_fits_a_phone(browser: Any, compared: dict[str, Path]) -> None:
    with watched(browser, viewport={"width": 360, "height": 700}) as seen:
        page = seen.open(compared["plain"], ready=False).page
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_flipped_tasks_have_a_line_of_their_own_on_a_phone(browser: Any, compared: dict[str, Path]) -> None:
    with watched(browser, viewport={"width": 375, "height": 800}) as seen:
        page = seen.open(compared["plain"], ready=False).page
        row = page.locator(".flips tbody tr").first
        task, kind = row.locator("th").bounding_box(), row.locator(".kind").bounding_box()
        assert task["y"] + task["height"] <= kind["y"] + 1
        assert task["width"] > 250
        assert not row.locator(".family").is_visible()


@pytest.mark.parametrize("kind", ["plain", "several"])
@pytest.mark.parametrize("width", [375, 768, 1000, 1280, 1920])
def test_nothing_is_printed_over_anything_else(browser: Any, compared: dict[str, Path], width: int, kind: str) -> None:
    with watched(browser, viewport={"width": width, "height": 900}) as seen:
        page = seen.open(compared[kind], ready=False).page
        for folded in page.locator("details").all():
            folded.evaluate("folded => { folded.open = true }")
        assert crowded(page) == []
        wider = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth).length"
        assert page.evaluate(wider) == 0


def test_nothing_is_printed_over_anything_else_on_paper(browser: Any, compared: dict[str, Path]) -> None:
    with watched(browser, viewport={"width": 718, "height": 1000}) as seen:
        page = seen.open(compared["several"], ready=False).page
        page.emulate_media(media="print")
        assert crowded(page) == []


def test_text_that_leaves_its_cell_and_ticks_that_touch_are_seen(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        "<table style='table-layout: fixed; width: 60px'><tr><td>unbreakable<td>b</table>"
        "<svg class=plot><text class=tick x=0 y=9>100</text><text class=tick x=9 y=9>200</text></svg>"
    )
    with watched(browser) as seen:
        page = seen.open(tmp_path / "page.html", ready=False).page
        assert crowded(page) == ["outside: unbreakable", "ticks: 100, 200"]


def test_only_what_was_tested_has_a_colour(browser: Any, compared: dict[str, Path]) -> None:
    with watched(browser) as seen:
        page = seen.open(compared["several"], ready=False).page
        assert page.locator(".judgement b").all_inner_texts() == ["No difference shown.", "Better."]
        families = page.locator("section:has(.judgement) .rowplot tbody tr:not(:first-child)")
        assert families.count() == 8
        assert families.locator(".dot.quiet").count() == 8
        whole = page.locator("section:has(.judgement) .rowplot tbody tr:first-child .dot")
        assert [dot.get_attribute("class") for dot in whole.all()] == ["dot quiet", "dot ok"]


def test_names_of_strangers_do_nothing(browser: Any, compared: dict[str, Path]) -> None:
    with watched(browser) as seen:
        page = seen.open(compared["hostile"], ready=False).page
        page.wait_for_timeout(300)
        assert seen.quiet, (seen.messages, seen.errors, seen.dialogs, seen.requests)
        assert page.locator("script, iframe, img, form, base, object, foreignObject, animate").count() == 0
        assert page.get_by_text("Not simply comparable").is_visible()
        assert "onerror=alert" in page.locator("main").inner_text()
