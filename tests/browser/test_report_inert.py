"""What strangers wrote does nothing in the browser: neither in the page nor unpacked from its data. And if it got into
the page all the same, the policy would stop it.

Every attack has its positive control: the same text where nothing protects, and there it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import Watched, aside, watched
from tests.browser.conftest import write_page
from tests.hostile_run import hostile_run
from tests.injection import CORPUS, EVIL, controls_in

from securebench.testing.synthetic_run import Record, SyntheticRun, write_run

INJECTED = """<script>window.owned = 'script'</script><img src=x onerror="window.owned = 'handler'">
<svg onload="window.owned = 'svg'"></svg><iframe srcdoc="<script>parent.owned = 'frame'</script>"></iframe>
<a id=link href="javascript:window.owned = 'address'">x</a><style>main { display: none }</style>"""
POLICY = re.compile(r"<meta http-equiv[^>]*>")
TEXTS = list(CORPUS.values())


def plant(record: Record) -> None:
    """Every text that is not checked against the plan is one of the corpus, a different one in every task."""
    number = int(record["task_id"][-5:])
    text = TEXTS[number % len(TEXTS)].encode("utf-8", "replace").decode()
    for name in ("failure_message", "verifier_stdout", "verifier_stderr", "producer_stdout", "producer_stderr"):
        record[name] = text
    record["failure_reason"] = None if record["passed"] else text[:500]
    record["candidate_patch" if record["candidate_patch"] is not None else "candidate_text"] = text
    record["assurance"] = text[:200]
    record["producer_metadata"]["agent"]["model"] = text[:200]
    record["resource_summary"] = {text[:50]: {"visibility": "public", "value": text}}
    record["verifier_metadata"] = {"rule": text, "outcomes": [{"outcome": text, "why": text, "seconds": 1}]}
    record["controls"] = [{"name": text, "held": False, "detail": text}]


@pytest.fixture(scope="module", params=["texts", "names"])
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages: the corpus in every text of the records, of any length, and in every name of plan and records."""
    place = tmp_path_factory.mktemp("planted")
    wanted = SyntheticRun(tasks=len(TEXTS), attempts=1, alter=plant, transcripts=1.0)
    if request.param == "names":
        return aside(lambda: write_page(place / "page.html", hostile_run(place / "run")))
    return aside(lambda: write_page(place / "page.html", write_run(place / "run", wanted)))


@contextmanager
def loaded(browser: Any, path: Path, **options: Any) -> Iterator[Watched]:
    with watched(browser, **options) as seen:
        seen.page.set_default_timeout(180_000)
        seen.open(path, ready=False)
        seen.page.wait_for_timeout(300)
        yield seen


def open_all(seen: Watched) -> None:
    """Open every task that the page shows, in one go: asking for each takes longer than opening it."""
    seen.page.evaluate(
        "document.querySelectorAll('.tasks tbody tr:not(.drill) button').forEach(button => button.click())"
    )
    seen.page.wait_for_selector("[aria-busy]", state="detached")


def owned(seen: Watched) -> Any:
    return seen.page.evaluate("window.owned")


@pytest.mark.parametrize("kind", ["asked", "all"])
def test_what_is_injected_into_the_page_does_not_run(
    browser: Any, pages: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    page = pages[kind].read_text().replace('<main id="main"', f"{INJECTED}<main id='main'", 1)
    (tmp_path / "page.html").write_text(page)
    with loaded(browser, tmp_path / "page.html") as seen:
        seen.page.locator("#link").evaluate("link => link.click()")
        seen.page.wait_for_timeout(300)
        assert owned(seen) is None
        assert seen.page.locator("main").is_visible(), "a style that is not ours does not count either"
        assert seen.page.locator("html[data-ready]").count() == 1, "and ours still does"
        assert any("Content Security Policy" in message for message in seen.messages)


def test_without_the_policy_it_runs(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    page = POLICY.sub("", pages["asked"].read_text()).replace('<main id="main"', f"{INJECTED}<main id='main'", 1)
    (tmp_path / "page.html").write_text(page)
    with loaded(browser, tmp_path / "page.html") as seen:
        seen.page.wait_for_function("window.owned !== undefined")
        assert owned(seen) is not None
        assert not seen.page.locator("main").is_visible()


def test_markup_cannot_be_made_of_text_by_any_script(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    attempt = "try { document.body.innerHTML = '<b>x</b>'; 'done' } catch (error) { error.name }"
    with watched(browser) as seen:
        assert seen.open(pages["asked"]).page.evaluate(attempt) == "TypeError"
    (tmp_path / "page.html").write_text(POLICY.sub("", pages["asked"].read_text()))
    with watched(browser) as seen:
        assert seen.open(tmp_path / "page.html").page.evaluate(attempt) == "done"


def test_nothing_planted_in_a_run_does_anything(browser: Any, planted: Path) -> None:
    with watched(browser) as seen:
        seen.open(planted)
        before = seen.page.evaluate("document.title")
        for _ in range((len(TEXTS) + 99) // 100):
            open_all(seen)
            seen.page.evaluate("document.querySelectorAll('details').forEach(folded => { folded.open = true })")
            if seen.page.get_by_role("button", name="Next").is_visible():
                seen.page.get_by_role("button", name="Next").click()
        assert seen.page.locator(".drill").count() > 50
        assert seen.quiet, seen
        assert seen.page.evaluate("document.title") == before
        addresses = seen.page.evaluate("[...document.querySelectorAll('[href], [src]')].map(one => one.outerHTML)")
        assert [one for one in addresses if EVIL in one or "javascript:" in one] == []
        handlers = "[...document.querySelectorAll('*')].flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on'))"
        assert seen.page.evaluate(handlers) == []
        assert controls_in(seen.page.evaluate("document.body.textContent")) == []


@pytest.mark.parametrize("width", [375, 1200])
def test_planted_texts_do_not_widen_the_page(browser: Any, planted: Path, width: int) -> None:
    with watched(browser, viewport={"width": width, "height": 800}) as seen:
        seen.open(planted)
        open_all(seen)
        assert seen.page.locator(".drill").count() > 50
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_same_texts_own_a_page_that_trusts_them(browser: Any, tmp_path: Path) -> None:
    naive = "".join(f"<p>{text}</p>\n" for name, text in CORPUS.items() if "script" in name)
    (tmp_path / "page.html").write_bytes(naive.encode("utf-8", "replace"))
    with loaded(browser, tmp_path / "page.html") as seen:
        for _ in range(600):
            if seen.dialogs:
                break
            seen.page.wait_for_timeout(100)
        assert seen.dialogs
