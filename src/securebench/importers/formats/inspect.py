"""`inspect`: data sets of Inspect: `input`, `target`, and `choices` where there are options.

With `choices` a row is multiple choice, and targets are letters. Without, the target is a short answer, or one of
several; how Inspect would have scored it stands in a task's code, not in its data, so it is compared strictly here."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

from securebench import _json
from securebench._json import Json
from securebench._schema import found
from securebench.answers.options import LETTERS
from securebench.importers.base import CannotConvert, PackRow, Record, Request
from securebench.importers.final_answers import accepted_answers, as_json_number
from securebench.importers.record_format import RecordFormat

_ELSEWHERE = ("sandbox", "files", "setup")


def convert(record: Record, _: Request) -> PackRow:
    """Raises CannotConvert."""
    for name in _ELSEWHERE:
        if record.get(name):
            raise CannotConvert(f"has `{name}`: how its result is checked stands in code, not in the data", field=name)
    question = _question(record.get("input"))
    targets, choices = _texts(record, "target"), _texts(record, "choices", commas=True)
    if not targets:
        raise CannotConvert("has no target", field="target")
    name = record.name_of("id") or record.numbered("inspect")
    if not choices:
        accepted = accepted_answers(targets)
        return PackRow(name, {"question": question}, {"accepted_answers": accepted}, "short_answer")
    right: list[Json] = [_index(target, choices) for target in targets]
    public: dict[str, Json] = {"question": question, "choices": list(choices)}
    if len(right) > 1:
        public["multi_select"] = True
    return PackRow(name, public, {"answer": right if len(right) > 1 else right[0]}, "multiple_choice")


def _index(target: str, choices: list[str]) -> int:
    letter = target.strip()
    if len(letter) != 1 or letter not in LETTERS[: len(choices)]:
        raise CannotConvert("its target names no option", f"expected a letter from A to {LETTERS[len(choices) - 1]}")
    return LETTERS.index(letter)


def _texts(record: Record, name: str, commas: bool = False) -> list[str]:
    """A list of texts, one text, or a list written into a cell of a CSV file."""
    value = record.get(name)
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(_json.JsonError):  # a text may begin with a bracket
            value = _json.loads(value)
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")] if commas else [value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        exact = as_json_number(Fraction(repr(value)))
        value = [_json.dumps(value if exact is None else exact)]
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CannotConvert(f"{name} is neither text nor a list of texts", f"found {found(value)}", name)
    filled = [item for item in value if item.strip()]
    if filled and len(filled) != len(value):
        raise CannotConvert(f"{name} has an empty entry among others", "letters count every entry", name)
    return filled


def _question(value: Any) -> str:
    """The text of an input, which may be the messages of a conversation."""
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, list) or not value:
        raise CannotConvert("has no input", f"found {found(value)}", "input")
    parts = [_message(message) for message in value]
    if len(parts) == 1 and parts[0][0] == "user":
        return parts[0][1]
    return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in parts)


def _message(message: Any) -> tuple[str, str]:
    content = message.get("content") if isinstance(message, dict) else None
    role = message.get("role") if isinstance(message, dict) else None
    if isinstance(content, list):
        pieces = [
            item.get("text") if isinstance(item, dict) and item.get("type") == "text" else None for item in content
        ]
        if None in pieces:
            raise CannotConvert("its input holds more than text", "images, audio or tool calls", "input")
        content = "\n".join(map(str, pieces))
    if role not in ("system", "user") or not isinstance(content, str):
        raise CannotConvert("its input holds messages that are no question", "of an assistant or a tool", "input")
    return role, content


FORMAT = RecordFormat(
    name="inspect",
    about="data sets of Inspect with input, target and choices (.json, .jsonl, .csv)",
    family=None,
    convert=convert,
)
