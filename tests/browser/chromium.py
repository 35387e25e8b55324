"""A real Chromium that talks to nobody, and pages that remember everything they said, asked for and ran."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.injection import EVIL

ARGUMENTS = (
    f"--host-resolver-rules=MAP {EVIL} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no name leads off this machine
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


T = TypeVar("T")


def need_chromium() -> str:
    """Where it is. Skips with the reason where there is none, and fails in CI, which provides it."""
    found = shutil.which("chromium")
    if found is None:
        message = "chromium is not installed (scripts/ci-browser)"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def aside(work: Callable[[], T]) -> T:
    """In a thread of its own, which may have an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


@dataclass
class Watched:
    """A page, and what happened on it: messages of the console, errors, dialogs, and addresses that were asked for."""

    page: Any
    messages: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path, fragment: str = "", *, ready: bool = True) -> Watched:
        """A file, from disk. With `ready`, waits until its script has done its part."""
        self.page.goto(path.as_uri() + fragment)
        if ready:
            self.page.wait_for_selector("html[data-ready]")
        return self

    @property
    def quiet(self) -> bool:
        """Nothing was said, nothing went wrong, nobody was asked for anything but the page itself."""
        return not (self.messages or self.errors or self.dialogs) and all(
            address.startswith("file:") for address in self.requests
        )


@contextmanager
def watched(browser: Any, **options: Any) -> Iterator[Watched]:
    """A page of its own, with its own storage."""
    context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | options))
    context.set_default_timeout(180_000)
    try:
        page = context.new_page()
        seen = Watched(page)
        page.on("console", lambda message: seen.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        yield seen
    finally:
        context.close()
