"""Makes the pictures of the README from synthetic runs: scripts/pictures.py [DIRECTORY]

Needs chromium (scripts/ci-browser); with pngquant the files are a third of their size."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from securebench.records.keys import load_signing_key, new_key
from securebench.reports.content import content_of
from securebench.reports.html.report_page import report_page
from securebench.reports.runs import load_runs
from securebench.testing.synthetic_run import SyntheticRun, write_run

WIDE = {"width": 1120, "height": 860}
MOST_BYTES = 200_000


def make_page(place: Path) -> Path:
    """A report of a run that is signed by a key one trusts."""
    key = new_key("evaluations-team", place / "keys")
    signing = load_signing_key(key.name, place / "keys")
    wanted = SyntheticRun(run_id="agent-large-2026-09", tasks=240, seed=11, transcripts=0.6, key=signing)
    run = write_run(place / "run", wanted)
    page = place / "report.html"
    page.write_text(report_page([content_of(one) for one in load_runs([run], {key.id: key.name})]))
    return page


def take(browser: Any, page: Path, target: Path) -> None:
    light = browser.new_context(viewport=WIDE, device_scale_factor=1.5).new_page()
    light.goto(page.as_uri())
    light.wait_for_selector("html[data-ready]")
    light.screenshot(path=target / "report.png")
    dark = browser.new_context(viewport=WIDE, device_scale_factor=1.5, color_scheme="dark").new_page()
    dark.emulate_media(reduced_motion="reduce")
    dark.goto(page.as_uri())
    dark.wait_for_selector("html[data-ready]")
    dark.get_by_label("Failure").select_option("tests_failed")
    dark.locator(".tasks tbody button").nth(3).click()
    dark.wait_for_selector(".drill .attempt")
    dark.locator(".tools").evaluate("tools => scrollTo(0, tools.getBoundingClientRect().top + scrollY - 20)")
    dark.screenshot(path=target / "task.png")
    phone = browser.new_context(viewport={"width": 375, "height": 780}, device_scale_factor=1.5).new_page()
    phone.goto(page.as_uri())
    phone.wait_for_selector("html[data-ready]")
    phone.screenshot(path=target / "phone.png")


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs" / "images"
    target.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="pictures-") as name:
        page = make_page(Path(name))
        with sync_playwright() as playwright:
            root = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=root)
            take(browser, page, target)
            browser.close()
    for picture in sorted(target.glob("*.png")):
        if shutil.which("pngquant"):
            subprocess.run(
                ["pngquant", "--force", "--skip-if-larger", "--strip", "--ext", ".png", "64", str(picture)], check=False
            )
        size = picture.stat().st_size
        sys.stdout.write(f"{picture.name}: {size:,} bytes{'' if size < MOST_BYTES else ', too large'}\n")


if __name__ == "__main__":
    main()
