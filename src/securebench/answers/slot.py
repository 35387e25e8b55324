"""The final slot: the one place of a response where its answer stands.

Either the whole response is one line, and that line is the answer; or its last line is `Answer: <answer>`,
and no other line starts that way. Nothing is searched for: a response that is neither has no answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from securebench.answers.characters import BLANK, MAX_ANSWER, MAX_RESPONSE, is_readable
from securebench.answers.verdict import TextVerdict, ambiguous, malformed, no_answer

WHOLE_RESPONSE = "whole_response"
FINAL_LINE = "final_line"

_BOLD = "**"
_LABELS = ("**answer:**", "**answer**:", "answer:")

# Anything a reader would take for an answer line, after any line break known to Unicode. Broader than the
# label that is accepted, so that a second answer cannot hide behind a decoration.
_LOOKS_LIKE_LABEL = re.compile(
    r"(?:\A|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])[ \t*_#>`~-]*answer[ \t*_]*[:\uff1a]", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Slot:
    """The text of the answer, trimmed, non-empty and readable, and the form it was given in."""

    text: str
    rule: str


@lru_cache(maxsize=64)  # the same control responses meet every row of a pack
def final_slot(response: str) -> Slot | TextVerdict:
    """The one final answer of a response, or why there is none.

    1. A response longer than MAX_RESPONSE characters, or an answer longer than MAX_ANSWER, is malformed.
    2. Spaces, tabs and line breaks around the response and around its last line are trimmed; nothing left is
       no answer.
    3. More than one line that starts with `Answer:` is ambiguous, even where they agree.
    4. With no such line, a response of one line is the answer, and one of several lines has none.
    5. With one such line, it must be the last one and spelt `Answer:` (in any case, ASCII only); otherwise the
       answer is malformed.
    6. One pair of `**` around the line, around the label or around the answer is ignored.
    7. A control, format or otherwise invisible character in the answer makes it malformed.
    """
    if len(response) > MAX_RESPONSE:
        return malformed("too_long")
    response = response.strip(BLANK)
    if not response:
        return no_answer("empty")
    labels = sum(1 for _ in _LOOKS_LIKE_LABEL.finditer(response)) if "answer" in response.lower() else 0
    if labels > 1:
        return ambiguous("several_answer_lines")
    *before, last = response.replace("\r", "\n").split("\n")
    line = _without_bold(last.strip(BLANK))
    if labels == 0:
        return no_answer("no_answer_line") if before else _slot(line, WHOLE_RESPONSE)
    label = next((label for label in _LABELS if line[: len(label)].lower() == label), None)
    if label is None:
        return malformed("answer_line_not_last_or_misspelt")
    return _slot(_without_bold(line[len(label) :].strip(BLANK)), FINAL_LINE)


def _slot(text: str, rule: str) -> Slot | TextVerdict:
    if not text:
        return no_answer("empty_answer_line")
    if len(text) > MAX_ANSWER:
        return malformed("too_long")
    return Slot(text, rule) if is_readable(text) else malformed("unreadable_character")


def _without_bold(text: str) -> str:
    inner = text[2:-2]
    if len(text) > 4 and text.startswith(_BOLD) and text.endswith(_BOLD) and _BOLD not in inner:
        return inner.strip(BLANK)
    return text
