"""One attempt in detail, as a piece of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from securebench.reports.clips import Clip
from securebench.reports.details import Candidate, Detail, Test
from securebench.reports.html.nodes import OPEN, Node, facts, node
from securebench.reports.rows import Row
from securebench.reports.spreads import seconds_of
from securebench.reports.transcript import Call, Step, Transcript
from securebench.reports.words import GLYPHS, seconds_text

_WHO = {"user": "Task", "system": "System", "agent": "Agent"}
_DIFF = {"+": "ins", "-": "del"}
_SHORT = 120
_MANY = 12  # tests that are told one by one; of more, those that passed are counted


def attempt(row: Row, detail: Detail | None, *, unfold: bool) -> Node:
    """Collapsed to a line that says how it ended, unless `unfold`."""
    body = list(_body(detail)) if detail is not None else [node("p", "soft", "The record is no longer there.")]
    return node("details", f"attempt m-{row.status} {OPEN if unfold else ''}".strip(), _summary(row), *body)


def missing(number: int) -> Node:
    return node("p", "attempt none", f"Attempt {number}: no record")


def _summary(row: Row) -> Node:
    told = [row.failure_reason or "", row.assurance or ""]
    if (seconds := seconds_of(row)) is not None:
        told.append(seconds_text(seconds))
    if row.status == "failed" and row.score:
        told.append(f"score {row.score:.2f}")
    return node(
        "summary",
        "",
        node("span", "glyph", GLYPHS.get(row.status, "·")),
        node("b", "", f" Attempt {row.attempt}: {row.status}"),
        node("span", "soft stranger", " " + " · ".join(filter(None, told))),
    )


def _body(detail: Detail) -> Iterator[Node]:
    if detail.message:
        yield node("p", "message stranger", detail.message)
    if detail.asked:
        yield _part("Asked", *_fields(detail.asked))
    if detail.candidate is not None:
        yield _part(f"Candidate ({detail.candidate.kind})", _candidate(detail.candidate))
    if detail.tests:
        yield _part("Tests", *_tests(detail))
    if detail.controls:
        yield _part(
            "Controls", node("ul", "plain", *(_control(one.name, one.held, one.detail) for one in detail.controls))
        )
    for title, text in detail.texts:
        yield _part(title, node("p", "stranger", text.start) if _is_short(text) else _pre(text))
    if detail.transcript is not None:
        yield _part("Transcript", _timeline(detail.transcript), fold=True)
    elif detail.no_transcript:
        yield node("p", "soft", f"{detail.no_transcript}.")
    if detail.facts:
        yield _part("Used", facts(detail.facts))


def _part(title: str, *inside: Node, fold: bool = False) -> Node:
    if fold:
        return node("details", "part", node("summary", "", node("b", "", title)), *inside)
    return node("div", "part", node("p", "label", title), *inside)


def _fields(asked: Sequence[tuple[str, Clip]]) -> Iterator[Node]:
    """Short ones beside their names, long ones beneath them."""
    short = [(name, text.start) for name, text in asked if _is_short(text)]
    for name, text in asked:
        if not _is_short(text):
            yield node("div", "", node("p", "soft stranger", name), _pre(text))
    if short:
        yield facts(short)


def _is_short(text: Clip) -> bool:
    return not text.left_out and "\n" not in text.start and len(text.start) < _SHORT


def _pre(text: Clip, kind: str = "stranger") -> Node:
    return node("pre", kind, *_clipped(text))


def _clipped(text: Clip) -> Iterator[Node | str]:
    yield text.start
    if text.left_out:
        yield _left_out(f"{text.left_out:,} characters")
        yield text.end


def _left_out(what: str) -> Node:
    """Marked by its look, which no text can imitate."""
    return node("strong", "cut", f" {what} left out here ")


def _candidate(candidate: Candidate) -> Node:
    if candidate.kind == "patch":
        return node("pre", "stranger diff", *_diff(candidate.content))
    if candidate.kind != "workspace":
        return _pre(candidate.content)
    if candidate.problem:
        return node("p", "stranger", candidate.problem)
    files = [node("li", "stranger", path, node("small", "", f" {size:,} bytes")) for path, size in candidate.files]
    more = [node("li", "", _left_out(f"{candidate.more_files:,} files"))] if candidate.more_files else []
    return node("ul", "plain files", *files, *more) if files else node("p", "soft", "No files.")


def _diff(content: Clip) -> Iterator[Node | str]:
    yield from _lines(content.start)
    if content.left_out:
        yield _left_out(f"{content.left_out:,} characters")
        yield from _lines(content.end)


def _lines(text: str) -> Iterator[Node | str]:
    for kind, lines in groupby(text.splitlines(keepends=True), _kind):
        joined = "".join(lines)
        yield node(kind, "", joined) if kind in {"ins", "del"} else node("span", "hunk", joined) if kind else joined


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "@@", "diff ")):
        return "hunk"
    return _DIFF.get(line[:1], "")


def _tests(detail: Detail) -> Iterator[Node]:
    shown: Sequence[Test] = detail.tests
    passed = sum(test.outcome == "passed" for test in shown)
    total = len(shown) + detail.more_tests
    if total > _MANY:
        yield node("p", "soft", f"{passed:,} of {total:,} passed.")
        shown = [test for test in shown if test.outcome != "passed"]
    yield node("ul", "plain tests", *map(_test, shown))
    if detail.more_tests:
        yield node("p", "", _left_out(f"{detail.more_tests:,} tests"))


def _test(test: Test) -> Node:
    """One text: there are very many of them. The style gives the mark."""
    time = "" if test.seconds is None else f", {seconds_text(test.seconds)}"
    why = f": {test.why}" if test.why else ""
    return node("li", "m-passed" if test.outcome == "passed" else "m-failed", f"{test.name} {test.outcome}{why}{time}")


def _control(name: str, held: bool | None, detail: str) -> Node:
    mark, word = ("pending", "not run") if held is None else ("passed", "held") if held else ("failed", "did not hold")
    glyph = node("span", "glyph", GLYPHS[mark])
    return node(
        "li", f"m-{mark}", glyph, node("b", "stranger", f" {name}"), node("span", "stranger", f" {word}: {detail}")
    )


def _timeline(transcript: Transcript) -> Node:
    steps: Iterable[Node] = map(_step, transcript.steps)
    more = [node("li", "", _left_out(f"{transcript.more:,} further steps"))] if transcript.more else []
    return node("ol", "timeline", *steps, *more)


def _step(step: Step) -> Node:
    told = [f"{step.tokens:,} tokens" if step.tokens is not None else "", step.time or ""]
    told.append(f"{step.cost:.4f} USD" if step.cost is not None else "")
    note = " · ".join(filter(None, told))
    return node(
        "li",
        f"by-{step.source}",
        node("p", "who", _WHO[step.source], node("small", "stranger", f" {note}") if note else None),
        node("p", "thought stranger", *_clipped(step.reasoning)) if step.reasoning else None,
        node("div", "said stranger", *_clipped(step.message)) if step.message else None,
        *map(_call, step.calls),
    )


def _call(call: Call) -> Node:
    return node(
        "div",
        "call",
        node("p", "soft", "calls ", node("code", "stranger", call.name)),
        _pre(call.arguments) if call.arguments else None,
        _pre(call.result, "stranger result") if call.result else None,
    )
