"""What strangers write, where people and services read it: the terminal, plain logs, JSON, our pages."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser

from securebench import _proc
from securebench._canonical import canonical_bytes
from securebench.audit.plays.record import made_on
from securebench.audit.plays.run_engine import Bench, lay_out, question
from securebench.audit.report.data import as_json
from securebench.audit.report.model import Finding, Mark, Place, Report
from securebench.audit.report.page import page
from securebench.audit.report.sarif import sarif
from securebench.audit.report.table import lines
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.records.plan import PLAN_FILE

MARK = "words-of-a-stranger"
_ORDERS = ("::", "##[", "##vso[", "%ESC", "<script", "<img")
_SECONDS = 60.0


def acting(text: str) -> str:
    """What in a text would act where it is shown, in words; empty where nothing would."""
    for char in text:
        if char not in "\n\t" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
            return f"U+{ord(char):04X} is in it"
    orders = [line for line in text.splitlines() if line.lstrip().startswith(_ORDERS)]
    return f"a line begins with {orders[0][:40]!r}" if orders else ""


def seen_in(text: str, wanted: bool) -> Seen:
    """`wanted`: whoever wrote it only wants to be read."""
    if MARK not in text:
        return Seen(End.FAULT, f"it was not shown at all: {text[-300:]}")
    found = acting(text)
    if wanted:
        return Seen(End.MISSED if found else End.REACHED, found)
    return Seen(End.REACHED if found else End.MISSED, found or "shown, and nothing acts")


@dataclass(frozen=True, slots=True)
class RunShown:
    """An agent prints this at a task of this name; the command line shows it, with these options."""

    text: str
    options: tuple[str, ...] = ()
    wanted: bool = False
    task: str = "shown"

    async def on(self, ground: Ground) -> Seen:
        program = f"import sys\nfor stream in (sys.stdout, sys.stderr):\n    stream.write({MARK + self.text!r})"
        bench = Bench((question(self.task),), program, more=json.dumps({"sandbox": {"backend": ground.backend}}))
        directory = lay_out(ground, bench)
        shown = await _said(ground, "run", "--config", str(directory / "tester.yaml"), "--unsafe", *self.options)
        trace = directory / "out" / "agent-trace.log"
        return seen_in(shown + (trace.read_text() if trace.exists() else ""), self.wanted)


@dataclass(frozen=True, slots=True)
class VerifyShown:
    """Somebody changed a run so that what it says of itself holds this; the command line verifies it."""

    text: str
    options: tuple[str, ...] = ()
    wanted: bool = False

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        run = made.copy(ground, made.sealed)
        plan = json.loads((run / PLAN_FILE).read_bytes())
        plan["benchmark"]["id"] = plan["harness"]["type"] = MARK + self.text
        (run / PLAN_FILE).write_bytes(canonical_bytes(plan))
        return seen_in(await _said(ground, "verify", str(run), *self.options), self.wanted)


async def _said(ground: Ground, *words: str) -> str:
    """Everything the command line prints, as a log keeps it."""
    env = {**_proc.TOOL_ENV, "XDG_CONFIG_HOME": str(ground.directory / "config"), "COLUMNS": "300"}
    env |= {name: value for name in ("TMPDIR", "DOCKER_HOST") if (value := os.environ.get(name))}
    result = await _proc.run_tool((sys.executable, "-m", "securebench", *words), _SECONDS, env=env)
    return (result.stdout + b"\n" + result.stderr).decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class PageShown:
    """A report of an audit has this in every place where a text of strangers can be."""

    text: str
    wanted: bool = False

    async def on(self, ground: Ground) -> Seen:  # noqa: ARG002 — the shape of a play
        report, plain = _report(MARK + self.text), _report(MARK)
        shown = page(report)
        if _elements(shown) != _elements(page(plain)):
            return Seen(End.REACHED, "it is markup in the page")
        others = (*lines(report, verbose=True), json.dumps(as_json(report)), json.dumps(sarif(report)))
        return seen_in("\n".join((*others, _controls(shown))), self.wanted)


def _report(text: str) -> Report:
    finding = Finding(text, text, text, text, Mark.FAILED, text, text, Place(text, 1), text)
    return Report(text, False, 0.0, {text: text}, {text: text}, (text,), (finding,), lead=text)


class _Reader(HTMLParser):
    """Which elements with which attributes there are."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[" ".join([tag, *sorted(name for name, _ in attrs)])] += 1


def _elements(text: str) -> Counter[str]:
    reader = _Reader()
    reader.feed(text)
    return reader.elements


def _controls(text: str) -> str:
    """Of a page only what no escaping of markup makes harmless; what is markup was looked at before."""
    return "".join(char for char in text if char != "\n" and unicodedata.category(char) in {"Cc", "Cs"})
