"""Answers to code and patch tasks, from the text a model replied with. Pure: code is parsed, never run.

The answer is the one fenced block of the reply, or the whole reply where it has none; two blocks are ambiguous, and a
reply of blanks is no answer. Python is then joined to the code that the task starts with, which is its `starter_code`,
or its prompt where that is the head of the function to write:

1. An answer that binds the entry point at its top level stands as it is. The starting code's other top-level
   statements (imports, helpers) go before it, so what the answer defines itself wins.
2. An answer that makes the open function at the end of the starting code longer is its continuation: as it is, or
   shifted as a whole to the indentation of the body, or with only its first line shifted.
3. Any other answer stands as it is, and its tests will tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securebench.answers.python_join import Joined, join
from securebench.errors import CandidateError, FailureReason
from securebench.families.code_completion import is_python
from securebench.harnesses.fences import UnclosedFence, fenced_blocks


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """A program, and how it came out of the reply: `source` is fence or whole, `joined` says what became of it."""

    text: str
    source: str
    joined: Joined = Joined.ALONE


def answer_block(reply: str) -> tuple[str, str]:
    """The one fenced block, or the whole reply; and which. Raises CandidateError."""
    try:
        blocks = fenced_blocks(reply)
    except UnclosedFence as error:
        raise CandidateError(FailureReason.MALFORMED_ANSWER, str(error)) from error
    if len(blocks) > 1:
        message = f"the reply holds {len(blocks)} fenced blocks; the answer is one"
        raise CandidateError(FailureReason.AMBIGUOUS_ANSWER, message)
    text, source = (blocks[0], "fence") if blocks else (reply, "whole")
    if not text.strip():
        raise CandidateError(FailureReason.NO_ANSWER, "the reply holds no answer")
    return text, source


def code_answer(reply: str, public: Mapping[str, Any]) -> CodeAnswer:
    """The program that a reply to a code task is, given the task's public fields. Raises CandidateError."""
    text, source = answer_block(reply)
    if not is_python(str(public.get("language", ""))):
        return CodeAnswer(text, source)
    joined, how = join(text, public.get("starter_code"), str(public.get("prompt", "")), public.get("entry_point"))
    return CodeAnswer(joined, source, how)


def patch_answer(reply: str) -> tuple[str, str]:
    """The patch that a reply is, and where it stood. Raises CandidateError."""
    text, source = answer_block(reply)
    return text if text.endswith("\n") else f"{text}\n", source
