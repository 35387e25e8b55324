"""The report in a real browser: it works from disk, asks nobody for anything, and runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import watched
from tests.browser.layout import crowded

from securebench.reports.content import content_of
from securebench.reports.html.report_page import report_page
from securebench.reports.runs import load_runs

PHONE = {"viewport": {"width": 375, "height": 812}}
KINDS = ["asked", "worked", "many", "all"]


def texts(seen: Any, selector: str) -> list[str]:
    found: list[str] = seen.page.locator(selector).all_inner_texts()
    return found


def rows(seen: Any) -> list[str]:
    return texts(seen, ".tasks tbody tr:not(.drill) th")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_opens_from_disk_without_a_word_and_without_a_request(
    browser: Any, pages: dict[str, Path], kind: str, scheme: str
) -> None:
    with watched(browser, color_scheme=scheme) as seen:
        seen.open(pages[kind])
        seen.page.mouse.wheel(0, 20_000)
        assert seen.quiet, seen
        assert len(seen.requests) == 1


def test_dark_is_dark_and_light_is_light(browser: Any, pages: dict[str, Path]) -> None:
    seen_colours = {}
    for scheme in ("light", "dark"):
        with watched(browser, color_scheme=scheme) as seen:
            colour = seen.open(pages["asked"]).page.evaluate("getComputedStyle(document.body).backgroundColor")
            seen_colours[scheme] = sum(map(int, re.findall(r"\d+", colour)[:3]))
    assert seen_colours["light"] > 700
    assert seen_colours["dark"] < 120


def test_columns_are_sorted_both_ways_and_say_so(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["asked"])
        planned = rows(seen)
        score = seen.page.locator("th[data-sort=score]")
        assert score.get_attribute("aria-sort") is None
        score.get_by_role("button").click()
        assert score.get_attribute("aria-sort") == "descending"
        assert rows(seen) == ["six", "code-1", "code-2", "eight", "nine"]
        score.get_by_role("button").press("Enter")
        assert score.get_attribute("aria-sort") == "ascending"
        assert rows(seen) == ["eight", "nine", "code-2", "six", "code-1"]
        seen.page.locator("th[data-sort=id] button").click()
        assert rows(seen) == sorted(planned)
        assert score.get_attribute("aria-sort") is None
        assert seen.quiet, seen


def test_numbers_are_sorted_as_numbers_over_all_pages(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["many"])
        seen.page.locator("th[data-sort=seconds] button").click()
        index = seen.page.evaluate("[...document.querySelectorAll('.tasks tbody tr')].length")
        assert index == 100
        seen.page.get_by_role("button", name="Next").click()
        seen.page.get_by_role("button", name="Next").click()
        assert seen.page.get_by_role("status").inner_text() == "201 to 240 of 240 tasks"
        assert len(rows(seen)) == 40
        assert seen.page.get_by_role("button", name="Next").is_disabled()


def test_tasks_are_found_by_name_status_family_tag_and_reason(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["asked"])
        seen.page.get_by_label("Find a task").fill("CODE")
        assert rows(seen) == ["code-1", "code-2"]
        seen.page.get_by_label("Status").select_option("failed")
        assert rows(seen) == ["code-2"]
        assert seen.page.get_by_role("status").inner_text() == "1 of 5 tasks"
        seen.page.get_by_label("Find a task").fill("no such task")
        assert rows(seen) == []
        assert seen.page.get_by_role("status").inner_text() == "No task is like that."
        seen.page.get_by_label("Find a task").fill("")
        seen.page.get_by_label("Status").select_option("all")
        seen.page.get_by_label("Tag").select_option("arithmetic")
        assert rows(seen) == ["six", "eight", "nine"]
        seen.page.get_by_label("Tag").select_option("all")
        seen.page.get_by_label("Family").select_option("code_completion")
        assert rows(seen) == ["code-1", "code-2"]


def test_details_are_unpacked_with_the_keyboard_alone(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["asked"])
        button = seen.page.get_by_role("button", name="code-2")
        button.focus()
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_selector(".drill .attempt")
        assert button.get_attribute("aria-expanded") == "true"
        shown = seen.page.locator(".drill").inner_text()
        assert "Attempt 1: failed" in shown
        assert "return x * 3" in shown
        assert "3 failed: wrong" in shown
        seen.page.locator(".drill details.part summary").first.click()
        said = seen.page.locator(".drill .timeline").first.inner_text()
        assert "Write double(x), which returns twice x. (code-2)" in said
        assert "Agent" in said
        button.press("Enter")
        assert button.get_attribute("aria-expanded") == "false"
        assert seen.page.locator(".drill").count() == 0
        assert seen.quiet, seen


def test_a_patch_is_shown_as_a_diff(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["worked"], "#r1-task-0")
        seen.page.wait_for_selector(".drill .diff ins")
        assert "must pass now 1 passed" in seen.page.locator(".drill").inner_text()
        assert "+++ b/wallet.py" in seen.page.locator(".drill .diff .hunk").first.inner_text()


def test_an_address_leads_to_a_task_on_any_page(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["many"], "#r1-task-230")
        seen.page.wait_for_selector(".drill .attempt")
        assert seen.page.get_by_role("status").inner_text() == "201 to 240 of 240 tasks"
        assert seen.page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


def test_a_column_of_the_overview_leads_to_its_task(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["asked"])
        seen.page.locator(".t[title^='code-2:']").click()
        seen.page.wait_for_selector(".drill .attempt")
        assert "code-2" in seen.page.evaluate("document.activeElement.textContent")


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_needs_no_scrolling_sideways(browser: Any, pages: dict[str, Path], kind: str) -> None:
    with watched(browser, **PHONE) as seen:
        seen.open(pages[kind])
        seen.page.locator(".tasks tbody button").first.click()
        seen.page.wait_for_selector(".drill .attempt")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 375
        assert seen.quiet, seen


def test_without_scripts_everything_but_the_folds_of_tasks_is_there(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser, java_script_enabled=False) as seen:
        seen.open(pages["many"], ready=False)
        assert len(rows(seen)) == 240
        assert seen.page.locator(".tasks tbody tr").last.is_visible()
        assert not seen.page.locator(".tools").is_visible()
        seen.open(pages["asked"], ready=False)
        failures = seen.page.locator(".failure")
        assert texts(seen, ".failure > .label") == ["eight", "nine", "code-2"]
        assert failures.locator(".attempt").count() == 5
        failures.last.locator("summary").first.click()
        assert "return x * 3" in failures.last.inner_text()
        assert seen.quiet, seen


def test_it_prints(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        printed = seen.open(pages["asked"]).page.pdf(format="A4")
        assert printed.startswith(b"%PDF-")
        assert 2 <= printed.count(b"/Type /Page\n") <= 12
        seen.page.emulate_media(media="print")
        assert not seen.page.locator("nav").first.is_visible()
        assert seen.page.locator(".big").is_visible()
        assert seen.page.locator(".failure").first.is_visible()
        seen.page.emulate_media(media="screen")
        assert not seen.page.locator(".failure").first.is_visible()


PRINTED = "() => { window.printed = document.querySelectorAll('.tasks tbody tr').length }"


def test_all_tasks_are_printed_whatever_page_is_shown(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["many"])
        seen.page.get_by_role("button", name="Next").click()
        seen.page.evaluate(f"addEventListener('beforeprint', {PRINTED})")
        seen.page.pdf(format="A4")
        assert seen.page.evaluate("window.printed") == 240
        assert len(rows(seen)) == 100
        assert seen.page.get_by_role("status").inner_text() == "101 to 200 of 240 tasks"
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        seen.page.emulate_media(media="print")
        assert seen.page.locator(".tasks tbody tr").last.is_visible()
        assert texts(seen, ".tasks caption") == ["240 tasks"]


def test_what_is_filtered_is_printed_and_said(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["many"]).page.get_by_label("Find a task").fill("algebra")
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        seen.page.emulate_media(media="print")
        assert len(rows(seen)) == 60
        assert texts(seen, ".tasks caption") == ["60 of 240 tasks"]


def test_a_table_too_long_to_print_says_how_much_of_it_is_printed(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    text = pages["many"].read_text()
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)
    assert script is not None
    shorter = script[1].replace("PRINTED = 5000", "PRINTED = 150")
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script[1], shorter)]
    (tmp_path / "page.html").write_text(text.replace(script[1], shorter).replace(html.escape(digests[0]), digests[1]))
    with watched(browser) as seen:
        seen.open(tmp_path / "page.html").page.evaluate("dispatchEvent(new Event('beforeprint'))")
        seen.page.emulate_media(media="print")
        assert len(rows(seen)) == 150
        assert texts(seen, ".tasks caption") == ["1 to 150 of 240 tasks"]
        assert seen.page.locator(".tasks caption").is_visible()


def test_without_scripts_all_tasks_are_printed(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser, java_script_enabled=False) as seen:
        seen.open(pages["many"], ready=False).page.emulate_media(media="print")
        assert seen.page.locator(".tasks tbody tr").last.is_visible()


@pytest.mark.parametrize("kind", ["asked", "all"])
def test_a_page_of_a_dark_screen_is_printed_dark_on_white(browser: Any, pages: dict[str, Path], kind: str) -> None:
    with watched(browser, color_scheme="dark") as seen:
        page = seen.open(pages[kind]).page
        page.emulate_media(media="print", color_scheme="dark")
        paper, ink = (
            sum(map(int, re.findall(r"\d+", page.evaluate(f"getComputedStyle(document.body).{one}"))[:3]))
            for one in ("backgroundColor", "color")
        )
        assert paper > 700
        assert ink < 200
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_a_filtered_table_says_so_above_it_and_aloud_once(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        seen.open(pages["asked"])
        assert texts(seen, ".tasks caption") == ["5 tasks"]
        seen.page.get_by_label("Find a task").fill("code")
        assert texts(seen, ".tasks caption") == ["2 of 5 tasks"]
        assert seen.page.locator("[role=status], [aria-live]").count() == 1


def test_fields_above_the_table_stand_on_one_line(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        boxes = [
            one.bounding_box() for one in seen.open(pages["many"]).page.locator(".tools input, .tools select").all()
        ]
        assert len(boxes) == 5
        assert len({(round(box["y"], 1), round(box["height"], 1)) for box in boxes}) == 1


@pytest.mark.parametrize("kind", ["many", "all"])
@pytest.mark.parametrize("width", [375, 720, 768, 1000, 1280])
def test_nothing_is_printed_over_anything_else(browser: Any, pages: dict[str, Path], width: int, kind: str) -> None:
    with watched(browser, viewport={"width": width, "height": 900}) as seen:
        assert crowded(seen.open(pages[kind]).page) == []


@pytest.mark.parametrize("kind", ["many", "all"])
def test_nothing_is_printed_over_anything_else_on_paper(browser: Any, pages: dict[str, Path], kind: str) -> None:
    with watched(browser, viewport={"width": 718, "height": 1000}) as seen:
        page = seen.open(pages[kind]).page
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert crowded(page) == []


def test_a_page_whose_script_cannot_start_shows_all_tasks(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    text = re.sub(r'(id="r1-index">)[^<]{20}', r"\1AAAAAAAAAAAAAAAAAAAA", pages["many"].read_text())
    (tmp_path / "page.html").write_text(text)
    with watched(browser) as seen:
        seen.open(tmp_path / "page.html", ready=False)
        seen.page.wait_for_selector("html[data-plain]")
        assert seen.page.locator(".tasks tbody tr").last.is_visible()


def test_a_page_without_details_still_sorts_and_filters(browser: Any, runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        report_page([content_of(run) for run in load_runs([runs["asked"]])], details=False)
    )
    with watched(browser) as seen:
        seen.open(tmp_path / "page.html", "#r1-task-1")
        seen.page.locator("th[data-sort=score] button").click()
        assert rows(seen)[:2] == ["six", "code-1"]
        seen.page.locator(".t").last.click()
        assert seen.page.locator(".tasks tbody button").count() == 0
        assert seen.quiet, seen


def test_one_broken_block_does_not_break_the_page(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    text = re.sub(r'(id="r1-block-0">)[^<]{20}', r"\1AAAAAAAAAAAAAAAAAAAA", pages["asked"].read_text())
    (tmp_path / "page.html").write_text(text)
    with watched(browser) as seen:
        seen.open(tmp_path / "page.html")
        seen.page.get_by_role("button", name="code-2").click()
        seen.page.get_by_text("The details could not be unpacked.").wait_for()
        assert len(rows(seen)) == 5
