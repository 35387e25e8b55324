"""One attempt in the terminal: candidate, tests, controls, output, and the transcript as a timeline."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from securebench.cli._show_run import STYLES
from securebench.cli._text import one_line, visible
from securebench.reports.clips import Clip
from securebench.reports.content import TaskLine
from securebench.reports.details import Candidate, Detail
from securebench.reports.rows import Row
from securebench.reports.spreads import seconds_of
from securebench.reports.transcript import Step, Transcript
from securebench.reports.words import GLYPHS, seconds_text

_LINE = {"+": "green", "-": "red", "@": "cyan"}
_WHO = {"user": "Task", "system": "System", "agent": "Agent"}


def task_lines(line: TaskLine) -> Iterator[RenderableType]:
    yield Text(one_line(line.task.id, 200), "bold")
    told = [line.task.task_type, *line.task.tags]
    yield Text(one_line(", ".join(told), 200), "dim")


def attempt_lines(row: Row, detail: Detail | None, *, asked: bool = True) -> Iterator[RenderableType]:
    """Everything told of it, with what was `asked` where that is wanted. Texts of strangers are made visible, and
    set as they are: no markup counts in them."""
    seconds = seconds_of(row)
    used = None if seconds is None else seconds_text(seconds)
    told = " · ".join(filter(None, (row.failure_reason, row.assurance, used)))
    title = Text(f"{GLYPHS.get(row.status, '·')} attempt {row.attempt}: {row.status} ", STYLES.get(row.status, ""))
    title.append(one_line(told, 100), "dim")
    yield Rule(title, align="left", style="dim")
    if detail is None:
        yield Text("The record is no longer there.", "dim")
        return
    if detail.message:
        yield Text(visible(detail.message), "red")
    if asked:
        yield from _asked(detail)
    if detail.candidate is not None:
        yield from _part(f"candidate ({detail.candidate.kind})", _candidate(detail.candidate))
    if detail.tests:
        yield from _part("tests", _tests(detail))
    if detail.controls:
        yield from _part("controls", _controls(detail))
    for title_, text in detail.texts:
        yield from _part(title_.lower(), _clip(text))
    if detail.transcript is not None:
        yield from _part("transcript", _timeline(detail.transcript))
    elif detail.no_transcript:
        yield Text(visible(detail.no_transcript), "dim")
    if detail.facts:
        facts = Text("\n").join(
            Text(f"{name}: ", "dim").append(visible(value, keep=""), "default") for name, value in detail.facts
        )
        yield from _part("used", facts)


def _asked(detail: Detail) -> Iterator[RenderableType]:
    """Short fields beside their names, long ones beneath them."""
    for name, text in detail.asked:
        if text.left_out or "\n" in text.start or len(text.start) > 60:
            yield from _part(one_line(name, 60), _clip(text))
        else:
            yield Text(f"{one_line(name, 60)}: ", "bold cyan").append(visible(text.start, keep=""), "default not bold")


def _part(title: str, body: Text) -> Iterator[RenderableType]:
    yield Text(title, "bold cyan")
    yield Padding(body, (0, 0, 0, 2))


def _clip(text: Clip, style: str = "") -> Text:
    shown = Text(visible(text.start).rstrip("\n"), style)
    if text.left_out:
        shown.append(f"\n[{text.left_out:,} characters left out; --all shows them]\n", "reverse")
        shown.append(visible(text.end).rstrip("\n"), style)
    return shown


def _candidate(candidate: Candidate) -> Text:
    if candidate.kind == "patch":
        return _diff(candidate.content)
    if candidate.kind != "workspace":
        return _clip(candidate.content)
    if candidate.problem:
        return Text(visible(candidate.problem), "red")
    lines = [Text(visible(path, keep="")).append(f"  {size:,} bytes", "dim") for path, size in candidate.files]
    if candidate.more_files:
        lines.append(Text(f"… and {candidate.more_files:,} more", "dim"))
    return Text("\n").join(lines)


def _diff(content: Clip) -> Text:
    shown = Text()
    for number, part in enumerate((content.start, content.end)):
        if number and content.left_out:
            shown.append(f"[{content.left_out:,} characters left out; --all shows them]\n", "reverse")
        for line in part.splitlines():
            head = line.startswith(("+++", "---", "diff "))
            shown.append(visible(line, keep="\t") + "\n", "bold" if head else _LINE.get(line[:1], ""))
    shown.rstrip()
    return shown


def _tests(detail: Detail) -> Text:
    lines = []
    for test in detail.tests:
        good = test.outcome == "passed"
        mark = "passed" if good else "failed"
        why = f": {test.why}" if test.why else ""
        time = f", {seconds_text(test.seconds)}" if test.seconds is not None else ""
        told = one_line(f"{test.name} {test.outcome}{why}{time}", 200)
        lines.append(Text(f"{GLYPHS[mark]} ", STYLES[mark]).append(told, "default"))
    if detail.more_tests:
        lines.append(Text(f"… and {detail.more_tests:,} more", "dim"))
    return Text("\n").join(lines)


def _controls(detail: Detail) -> Text:
    words = {True: ("passed", "held"), False: ("failed", "did not hold"), None: ("pending", "not run")}
    lines = []
    for control in detail.controls:
        mark, word = words[control.held]
        told = one_line(f"{control.name} {word}: {control.detail}", 300)
        lines.append(Text(f"{GLYPHS[mark]} ", STYLES[mark]).append(told, "default"))
    return Text("\n").join(lines)


def _timeline(transcript: Transcript) -> Text:
    shown = Text()
    for step in transcript.steps:
        _step(shown, step)
    if transcript.more:
        shown.append(f"[{transcript.more:,} further steps left out]", "reverse")
    shown.rstrip()
    return shown


def _step(shown: Text, step: Step) -> None:
    told = [f"{step.tokens:,} tokens" if step.tokens is not None else "", step.time or ""]
    told.append(f"{step.cost:.4f} USD" if step.cost is not None else "")
    shown.append("● ", "cyan" if step.source == "agent" else "dim")
    shown.append(_WHO[step.source], "bold").append(f"  {one_line(' · '.join(filter(None, told)), 100)}\n", "dim")
    for text, style in ((step.reasoning, "italic dim"), (step.message, "")):
        if text:
            shown.append(_indented(_clip(text, style)))
    for call in step.calls:
        shown.append("│ ", "dim").append("→ ", "magenta").append(one_line(call.name, 80), "magenta").append("\n")
        if call.arguments:
            shown.append(_indented(_clip(call.arguments)))
        if call.result is not None:
            shown.append(_indented(_clip(call.result, "dim")))


def _indented(text: Text) -> Text:
    lines = text.split("\n", allow_blank=True)
    return Text("").join(Text("│ ", "dim").append(line).append("\n") for line in lines)
