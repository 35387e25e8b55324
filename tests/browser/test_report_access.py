"""Who does not see, does not use a mouse, or sees little contrast can read the report too."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import watched

CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return channels("white");
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || element.closest("[aria-hidden=true], .sr, script, style, svg, .skip, :disabled")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [light(channels(style.color)), light(behind(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) low.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(low)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["asked", "worked", "all"])
def test_every_text_has_the_contrast_of_wcag_aa(browser: Any, pages: dict[str, Path], kind: str, scheme: str) -> None:
    with watched(browser, color_scheme=scheme) as seen:
        seen.open(pages[kind])
        seen.page.locator(".tasks tbody button").last.click()
        seen.page.wait_for_selector(".drill .attempt")
        for folded in seen.page.locator("details").all():
            folded.evaluate("folded => { folded.open = true }")
        assert seen.page.evaluate(CONTRAST) == []


def test_the_contrast_of_a_page_that_has_little_is_seen(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<body><p style='color: #999'>grey</p>")
    with watched(browser) as seen:
        assert seen.open(tmp_path / "page.html", ready=False).page.evaluate(CONTRAST) == ["P. 2.85"]


@pytest.mark.parametrize("kind", ["asked", "all"])
def test_landmarks_headings_captions_and_names_are_there(browser: Any, pages: dict[str, Path], kind: str) -> None:
    with watched(browser) as seen:
        page = seen.open(pages[kind]).page
        for role in ("banner", "main", "contentinfo"):
            assert page.get_by_role(role).count() == 1, role
        assert page.get_by_role("navigation").count() >= 1
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(one => Number(one.tagName[1]))")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), levels
        assert page.evaluate("[...document.querySelectorAll('table')].filter(one => !one.caption).length") == 0
        assert page.evaluate("document.querySelectorAll('th:not([scope])').length") == 0
        unnamed = "svg:not([aria-hidden=true]):not([aria-label]):not(svg svg), input:not(label input), select:not(label select)"
        assert page.locator(unnamed).count() == 0
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
        assert len(ids) == len(set(ids))
        assert page.evaluate("document.documentElement.lang") == "en"


def test_the_first_key_leads_past_everything_to_the_content(browser: Any, pages: dict[str, Path]) -> None:
    with watched(browser) as seen:
        page = seen.open(pages["asked"]).page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("width", [375, 1200])
def test_tables_are_tables_also_where_they_are_laid_out_otherwise(
    browser: Any, pages: dict[str, Path], width: int
) -> None:
    with watched(browser, viewport={"width": width, "height": 800}) as seen:
        page = seen.open(pages["asked"]).page
        table = page.get_by_role("table", name="5 tasks")
        assert table.get_by_role("row").count() == 6
        assert table.get_by_role("rowheader").count() == 5
        assert table.get_by_role("columnheader", name="Attempts").count() == 1
        told = table.aria_snapshot()
        assert 'rowheader "code-2"' in told
        assert "1 of 2 passed" in told
