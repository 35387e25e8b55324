"""What is told of a suite that did not run: how it ended and its last complaint, and never a part of a line."""

from __future__ import annotations

import pytest

from securebench.sandboxes.base import Outcome, Output, SandboxResult, Usage
from securebench.verifiers.suites.run import last_words


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        (b"Traceback:\n  x\nModuleNotFoundError: No module named 'pytest'\n", ": ModuleNotFoundError: No module named 'pytest'"),
        (b"\x1b[31mno\xff\n\n", ": \\x1b[31mno\ufffd"),
        (b"", ""),
        (b"\n \n", ""),
        (b"x" * 301, ""),
    ],
)  # fmt: skip
def test_last_words_are_one_visible_line(stderr: bytes, words: str) -> None:
    assert last_words(result(stderr)) == "exit code 1" + words


def test_stream_that_was_cut_is_not_told() -> None:
    assert last_words(result(b"no such", total=10)) == "exit code 1"


def test_program_that_was_ended_has_no_exit_code() -> None:
    assert last_words(result(b"slow", outcome=Outcome.TIMEOUT)) == "ended with timeout: slow"


def result(stderr: bytes, total: int | None = None, outcome: Outcome = Outcome.EXITED) -> SandboxResult:
    code = 1 if outcome is Outcome.EXITED else None
    said = Output(stderr, len(stderr) if total is None else total)
    return SandboxResult(outcome, code, None, Output(b"", 0), said, Usage(0.1), frozenset(), {})
