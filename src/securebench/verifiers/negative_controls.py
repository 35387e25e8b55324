"""Responses that know nothing but the public side of a task. A pack that rewards one rewards not solving it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from securebench.answers.options import LETTERS

CONSTANTS = ("A", "0", "1", "42", "yes", "no")
MAX_COPIED = 8
MASTER_KEYS = ("Thought process:", "Solution", "Let's solve this problem step by step.", ":", ".")
SHAPES = ("{}", "[]", "null", '{"answer": ""}', "Answer:", "**Answer:**", "Answer: {}")


@dataclass(frozen=True, slots=True)
class Control:
    """One response and whether it must fail. A constant may be right by luck: its rate over a pack is what tells."""

    name: str
    response: str
    must_fail: bool


def _numbered(name: str, responses: Iterable[str]) -> list[Control]:
    return [Control(f"{name}:{number}", response, True) for number, response in enumerate(responses, 1)]


_SAME_FOR_EVERY_TASK = (
    Control("empty", "", True),
    Control("whitespace", " \t\r\n \n", True),
    *_numbered("shape", SHAPES),
    *_numbered("master_key", MASTER_KEYS),
    *(Control(f"constant:{constant}", constant, False) for constant in CONSTANTS),
)
_DUMPS = (
    Control("dump_all:numbers", ", ".join(map(str, range(-10, 1001))), True),
    Control("dump_all:words", "yes no true false none all A B C D 0 1 2 3 4 5 6 7 8 9 10 100", True),
    Control("dump_all:answer_lines", "\n".join(f"Answer: {word}" for word in (*CONSTANTS, "true", "false")), True),
)


def negative_controls(family_name: str, public: Mapping[str, Any]) -> Iterable[Control]:
    """The controls for one task, made from its `input` fields only."""
    yield from _SAME_FOR_EVERY_TASK
    yield from _echoes(public, has_slot=family_name != "free_response")
    if family_name == "short_answer":
        yield from _copied_numbers(str(public.get("question", "")))
    if family_name == "multiple_choice":
        yield from _choice_dumps(list(public["choices"]), bool(public.get("multi_select", False)))
    else:
        yield from _DUMPS


_NUMBER = re.compile(r"[0-9][0-9.,/%]*")


def _copied_numbers(question: str) -> Iterator[Control]:
    """Numbers that stand in the question. One may well be the answer (`which is larger`), so this is a guess whose
    rate over the pack tells."""
    for number in sorted(set(_NUMBER.findall(question)))[:MAX_COPIED]:
        yield Control("guess:a number from the question", number.rstrip(".,/"), False)


def _echoes(public: Mapping[str, Any], has_slot: bool) -> Iterator[Control]:
    texts = [public[name] for name in ("question", "prompt", "context") if isinstance(public.get(name), str)]
    for name in ("question", "prompt", "context"):
        if isinstance(public.get(name), str):
            yield Control(f"echo:{name}", public[name], True)
    if texts:
        everything = " ".join("\n".join(texts).split())
        if everything not in texts:
            yield Control("echo:one_line", everything, True)
        if has_slot:
            yield Control("echo:in_slot", f"Answer: {everything}", True)


def _choice_dumps(choices: list[str], several: bool) -> Iterator[Control]:
    letters = LETTERS[: len(choices)]
    # Where several may be right, all of them may be: naming every letter is then a guess, not a trick.
    yield Control("dump_all:letters", ", ".join(letters), not several)
    yield Control("dump_all:letters_joined", letters, True)
    yield Control("dump_all:letters_spaced", " ".join(letters), True)
    yield Control("dump_all:texts", ", ".join(choices), True)
    yield Control("dump_all:lines", "\n".join(f"Answer: {letter}" for letter in letters), True)
