"""Options and keys in the ways data sets write them down."""

from __future__ import annotations

import hashlib
from typing import Any

from securebench.answers.options import LETTERS
from securebench.importers.base import CannotConvert, Record


def options_of(record: Record) -> list[str]:
    """The options of a row: a list, an object of texts and labels, or columns A, B, C and so on. Raises
    CannotConvert."""
    value = record.get("choices", "options")
    if isinstance(value, dict):
        value = value.get("text")
    if value is None:
        value = _columns(record)
    if not isinstance(value, list) or len(value) < 2:
        raise CannotConvert("has no options", "expected a list `choices` or `options`, or columns A, B, C, …")
    if not all(isinstance(option, str) for option in value):
        raise CannotConvert("has options that are no text")
    return [option.strip() for option in value]


def _columns(record: Record) -> list[Any]:
    """Columns A, B, C up to the last that holds something; a letter means its column, so none may be left out."""
    cells = [record.values.get(letter) for letter in LETTERS]
    while cells and cells[-1] in (None, ""):
        cells.pop()
    if None in cells or "" in cells:
        raise CannotConvert("has an empty option before another one")
    return cells


def right_index(answer: Any, options: list[str], labels: list[str] | None = None) -> int:
    """Which option is right: its letter or its number from 0, and where options have labels, the label and nothing
    else. Raises CannotConvert; the text of an option is not taken for a key, and neither is a number that could mean
    another one."""
    if labels is not None:
        return _labelled(answer, options, labels)
    if isinstance(answer, str):
        text = answer.strip()
        if len(text) == 1 and text in LETTERS[: len(options)]:
            return LETTERS.index(text)
        if text.isdecimal() and len(text) < 3:
            answer = int(text)
            if text in options and options.index(text) != answer:
                raise CannotConvert("its key is the number of one option and the text of another")
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(options):
        return answer
    raise CannotConvert("its key names no option", f"expected a letter or a number from 0 to {len(options) - 1}")


def _labelled(answer: Any, options: list[str], labels: list[str]) -> int:
    if len(labels) != len(options) or len(set(map(str, labels))) != len(labels):
        raise CannotConvert("has not one label of its own for each option")
    text = answer.strip() if isinstance(answer, str) else str(answer)
    if isinstance(answer, bool) or text not in labels:
        raise CannotConvert("its key names no option", "expected one of its labels")
    return labels.index(text)


def shuffled(options: list[str], question: str, seed: str) -> list[int]:
    """An order of the options that depends on public text only: the same every time, and no hint at the right one."""

    def key(index: int) -> bytes:
        return hashlib.sha256("\0".join((seed, question, options[index])).encode("utf-8", "surrogatepass")).digest()

    return sorted(range(len(options)), key=key)
