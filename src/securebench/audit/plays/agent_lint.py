"""Leaks that want to pass a pack's lint unnoticed. Nothing runs: a lint is a function of what is public and hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from securebench.audit.pack.derived import HiddenTests, stale_files
from securebench.audit.pack.leaks import Secret, stated_solutions
from securebench.audit.pack.repaired import later_releases, project_release, repaired_copies
from securebench.audit.suite.attack import End, Ground, Seen

Files = tuple[tuple[str, bytes], ...]
Lint = Callable[[Files, str], Sequence[str]]
"""What is wrong with public files, given what is hidden; nothing wrong is an empty answer."""


@dataclass(frozen=True, slots=True)
class Unnoticed:
    """Public files that want the lint to find nothing in them."""

    lint: Lint
    public: Files
    hidden: str

    async def on(self, _ground: Ground) -> Seen:
        found = self.lint(self.public, self.hidden)
        return Seen(End.MISSED if found else End.REACHED, "; ".join(found)[:500], "reported" if found else "")


def stated(public: Files, hidden: str) -> list[str]:
    """Where the public text says what is hidden."""
    texts = {path: data.decode("utf-8", "replace") for path, data in public}
    return [str(leak) for leak in stated_solutions(texts, [Secret("eval", hidden)])]


def repaired(public: Files, hidden: str) -> list[str]:
    """Where the code is repaired already, the hidden patch being what repairs it."""
    found = [f"{path} has {repaired}" for path, repaired in repaired_copies(hidden, public)]
    release = project_release({path: data.decode("utf-8", "replace") for path, data in public})
    if release is not None:
        found += later_releases(*release, (path for path, _ in public))
    return found


def derived(public: Files, hidden: str) -> list[str]:
    """What was made from the hidden tests, given by their ids, one a line."""
    return [stale.path for stale in stale_files(public, HiddenTests.of((), hidden.splitlines())) if stale.of_hidden]
