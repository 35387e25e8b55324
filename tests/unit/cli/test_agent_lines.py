"""Agents' output: whole lines, each with its owner, however the pieces arrive."""

from __future__ import annotations

from pathlib import Path

import pytest

from securebench.cli import _agent_lines
from securebench.cli._agent_lines import TRACE_NAME, AgentLines, agent_trace
from securebench.progress import Event, ProgressEvent, silent


def output(task: str, text: str, stream: str = "stdout") -> ProgressEvent:
    return ProgressEvent(Event.PRODUCER_OUTPUT, task, 1, {"stream": stream, "text": text})


def done(task: str) -> ProgressEvent:
    return ProgressEvent(Event.PRODUCER_DONE, task, 1, {})


def test_pieces_of_two_agents_and_two_streams_do_not_mix() -> None:
    seen: list[str] = []
    lines = AgentLines(seen.append)
    for event in (
        output("a", "one "),
        output("b", "uno "),
        output("a", "err", "stderr"),
        output("a", "two\nthree"),
        output("b", "dos\n"),
        done("b"),
        done("a"),
    ):
        lines(event)
    assert seen == ["a #1 │ one two", "b #1 │ uno dos", "a #1 │ err", "a #1 │ three"]


def test_control_characters_are_made_visible_and_endless_lines_are_cut_in_pieces() -> None:
    seen: list[str] = []
    lines = AgentLines(seen.append)
    lines(output("a", "\x1b[2J\n"))
    lines(output("a", "x" * 40_000))
    assert "\x1b" not in seen[0]
    assert seen[1].endswith("x" * 100)


def test_the_trace_file_holds_every_line_and_is_made_only_when_needed(tmp_path: Path) -> None:
    with agent_trace(tmp_path, silent):
        pass
    assert not (tmp_path / TRACE_NAME).exists()
    with agent_trace(tmp_path, silent) as listen:
        for event in (output("a", "ä\nb"), done("a")):
            listen(event)
    assert (tmp_path / TRACE_NAME).read_text() == "a #1 │ ä\na #1 │ b\n"


def test_a_flood_of_empty_lines_does_not_become_a_flood_of_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_agent_lines, "_MOST", 1000)
    seen: list[str] = []
    lines = AgentLines(seen.append)
    for _ in range(10):
        lines(output("a", "\n" * 10_000))
    lines(output("b", "other\n"))
    shown = "\n".join(seen)
    assert len(shown) < 1100
    assert seen[0].endswith("[…cut: too much output to show]")
    assert seen[-1] == "b #1 │ other"
    lines(done("a"))
    lines(output("a", "the next attempt\n"))
    assert seen[-1] == "a #1 │ the next attempt"
