"""The viewer in a real browser: find, open, compare, follow; and a page of somebody else's that was pointed at it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import Watched, watched
from tests.injection import CORPUS, EVIL, controls_in
from tests.viewing import Viewer, viewer


@pytest.fixture(scope="module")
def shown(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    root = tmp_path_factory.mktemp("shown")
    for name, run in runs.items():
        shutil.copytree(run, root / name)
    shutil.copytree(runs["many"], root / "more" / "again")
    with viewer(root) as running:
        yield running


def visited(seen: Watched, url: str) -> Watched:
    seen.page.goto(url)
    seen.page.wait_for_selector("html[data-ready]")
    return seen


def at_home(seen: Watched, shown: Viewer) -> bool:
    """Nothing was said, and nobody else was asked."""
    return not (seen.messages or seen.errors or seen.dialogs) and all(
        address.startswith(shown.url) for address in seen.requests
    )


def test_a_run_is_found_and_its_report_opened(browser: Any, shown: Viewer) -> None:
    with watched(browser) as seen:
        page = visited(seen, shown.url).page
        page.get_by_label("Find a run").fill("ASK")
        assert page.locator(".list tbody tr:visible").count() == 1
        page.get_by_role("link", name="asked", exact=True).click()
        page.wait_for_selector("html[data-ready]")
        assert page.get_by_role("heading", level=1).inner_text() == "asked"
        page.get_by_role("button", name="code-2").click()
        page.wait_for_selector(".drill .attempt")
        assert at_home(seen, shown), seen


def test_two_runs_are_compared_by_clicking(browser: Any, shown: Viewer) -> None:
    with watched(browser) as seen:
        page = visited(seen, shown.url).page
        links = page.locator("tr", has_text="synthetic-suite").locator("a.compare")
        links.nth(0).click()
        assert page.get_by_role("status").inner_text() == "Choose the run to compare it with."
        links.nth(1).click()
        page.wait_for_url("**/compare/*/*")
        assert "many" in page.get_by_role("main").inner_text()
        assert at_home(seen, shown), seen


def test_without_scripts_two_runs_are_compared_by_two_pages(browser: Any, shown: Viewer) -> None:
    with watched(browser, java_script_enabled=False) as seen:
        seen.page.goto(shown.url)
        seen.page.locator("tr", has_text="synthetic-suite").locator("a.compare").first.click()
        seen.page.locator(".choices a").first.click()
        assert seen.page.url.count("/") == shown.url.count("/") + 2
        assert "many" in seen.page.get_by_role("main").inner_text()
        assert at_home(seen, shown), seen


@pytest.mark.parametrize("width", [375, 1200])
def test_the_list_fits(browser: Any, shown: Viewer, width: int) -> None:
    with watched(browser, viewport={"width": width, "height": 800}) as seen:
        page = visited(seen, shown.url).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".list tbody tr:visible").count() == 4


def test_a_run_under_way_is_followed(browser: Any, tmp_path: Path) -> None:
    run = tmp_path / "live"
    run.mkdir()
    (run / "plan.json").write_text("{}")
    journal = (run / "events.jsonl").open("a", buffering=1)

    def happens(event: str, **more: Any) -> None:
        journal.write(json.dumps({"event": event, "time": 1e9, **more}) + "\n")

    with journal, viewer(tmp_path) as shown, watched(browser) as seen:
        happens("run_start", run_id="live", benchmark_id="b", planned=3, done_before=0)
        happens("task_start", task_id="<script>alert(1)</script>", attempt=1)
        page = visited(seen, shown.url).page
        assert page.get_by_role("link", name="live", exact=True).get_attribute("href").endswith("/live")
        page.get_by_role("link", name="follow live").click()
        page.wait_for_selector("html[data-ready='0']")
        assert page.locator("#under").inner_text().startswith("<script>alert(1)</script> #1")
        happens("task_done", task_id="<script>alert(1)</script>", attempt=1, status="passed", cost_usd=0.5)
        page.wait_for_selector("html[data-ready='1']")
        assert page.locator("#statuses [data-status=passed] b").inner_text() == "1"
        assert page.locator("#under li").count() == 0
        assert "$ 0.50" in page.locator("#pace").inner_text()
        for number in (2, 3):
            happens("task_done", task_id=f"t{number}", attempt=1, status="failed", failure_reason="wrong_answer")
        assert not page.locator("#came").is_visible()
        happens("run_done", score=0.625)
        page.wait_for_selector("html[data-ready='3']")
        assert page.locator("#phase").inner_text() == "finished"
        assert page.locator("#last li").count() == 3
        assert page.locator("#came").inner_text() == "Score 62.5 %"
        assert not page.locator("#busy").is_visible()
        page.reload()
        assert page.locator("#came").inner_text() == "Score 62.5 %"
        assert not page.locator("#busy").is_visible()
        assert at_home(seen, shown), seen


def test_planted_names_do_nothing_in_the_list(browser: Any, tmp_path: Path) -> None:
    for number, text in enumerate(CORPUS.values()):
        run = tmp_path / f"run-{number}"
        run.mkdir()
        (run / "plan.json").write_text("{}")
        told = {"run_id": text, "benchmark_id": text, "harness": text, "score": 0.5, "planned": 1, "total": 1}
        (run / "summary.json").write_text(json.dumps(told))
    with viewer(tmp_path) as shown, watched(browser, viewport={"width": 1200, "height": 900}) as seen:
        page = visited(seen, shown.url).page
        assert page.locator(".list tbody tr").count() == len(CORPUS)
        assert at_home(seen, shown), seen
        assert controls_in(page.evaluate("document.body.textContent")) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        addresses = page.evaluate(
            "[...document.querySelectorAll('[href], [src]')].map(one => one.outerHTML.split('>')[0])"
        )
        assert [one for one in addresses if EVIL in one or "javascript:" in one] == []


def test_a_page_whose_name_was_pointed_at_loopback_reads_nothing(browser: Any, shown: Viewer) -> None:
    """DNS rebinding: this browser was told that evil.invalid is this machine."""
    with watched(browser) as seen:
        answer = seen.page.goto(f"http://{EVIL}:{shown.port}/{shown.token}/")
        assert answer.status == 403
        assert "asked" not in seen.page.evaluate("fetch(location.href).then(answer => answer.text())")
        # The name does lead to this machine: by its right one, the same browser sees everything.
        assert seen.page.goto(shown.url).status == 200
        assert "asked" in seen.page.content()


def test_another_page_cannot_frame_or_read_the_viewer(browser: Any, shown: Viewer, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f'<iframe src="{shown.url}"></iframe>')
    with watched(browser) as seen:
        seen.open(tmp_path / "page.html", ready=False)
        seen.page.wait_for_timeout(500)
        assert "asked" not in seen.page.frames[-1].content()
        read = f"fetch('{shown.url}').then(answer => answer.text(), error => 'refused')"
        assert seen.page.evaluate(read) == "refused"
