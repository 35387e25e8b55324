"""`math`: problems whose solution ends with `\\boxed{…}`, or that have the answer in a field of its own.

Numbers are compared as numbers. Everything else is LaTeX, compared as text in a few spellings that mean the same to any
reader; what is right in other words is not found out, so scores are lower than those of graders that compute."""

from __future__ import annotations

import re

from securebench._json import Json
from securebench.answers.numbers import read_number
from securebench.importers.asking import SOLUTION, SUBJECT
from securebench.importers.base import CannotConvert, PackRow, Record, Request, Setting
from securebench.importers.final_answers import as_json_number
from securebench.importers.record_format import RecordFormat

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*(?P<brace>\{)?")
_FRACTION = re.compile(r"(?P<sign>-?)\\[dt]?frac\s*(?:\{(?P<a>\d+)\}|(?P<b>\d))\s*(?:\{(?P<c>\d+)\}|(?P<d>\d))")
_TEXT = re.compile(r"\\(?:text|mbox|textbf|mathrm)\s*\{([^{}]*)\}")
_MARKS = ("\\$", "$", "\\%", "%", "^{\\circ}", "^\\circ", "°")  # of what is counted; the longer spelling first


def convert(record: Record, request: Request) -> PackRow:
    """Raises CannotConvert."""
    solution = record.optional_text("solution")
    answer = _answer(record) or boxed(solution or "")
    if answer is None or not answer.strip():
        raise CannotConvert("has neither an answer nor a \\boxed{} in its solution")
    accepted = spellings(answer.strip())
    if request.settings.get("answers") == "numbers" and isinstance(accepted[0], str):
        raise CannotConvert("its answer is no number, and answers=numbers was asked for")
    private: dict[str, Json] = {"accepted_answers": accepted}
    if solution:
        private[SOLUTION] = solution
    subject, level = record.get("subject", "type"), record.get("level")
    known = {SUBJECT: subject, "level": level}
    return PackRow(
        id=record.name_of("unique_id", "id") or record.numbered("math"),
        input={"question": record.text("problem", "question")},
        eval=private,
        metadata={name: value for name, value in known.items() if isinstance(value, str | int)},
    )


def _answer(record: Record) -> str | None:
    """What the field says: a text, the number that it is, or what stands in its box."""
    value = record.get("answer")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    text = record.optional_text("answer")
    return text and (boxed(text) or text)


def boxed(solution: str) -> str | None:
    """What stands in the last box of a solution; None where there is no whole one."""
    matches = list(_BOXED.finditer(solution))
    if not matches:
        return None
    rest = solution[matches[-1].end() :]
    if matches[-1]["brace"] is None:
        alone = re.match(r"\s*([^\W_])(?!\w)", rest)  # `\\boxed 5`; of `\\boxed 12` it would be the 1
        return alone[1] if alone else None
    depth = 1
    for place, char in enumerate(rest):
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return rest[:place]
    return None


def spellings(answer: str) -> list[Json]:
    """The accepted answers: one JSON number where it is one, else the texts that say the same."""
    plain = _tidy(answer)
    value = read_number(plain.replace("{,}", ","))
    number = None if value is None else as_json_number(value)
    if number is not None:
        return [number]
    found = [plain, "".join(plain.split())]
    bare = plain
    for mark in _MARKS:
        bare = bare.replace(mark, "")
    found.append(bare.strip())
    if match := _FRACTION.fullmatch(bare.strip()):
        found.append(f"{match['sign']}{match['a'] or match['b']}/{match['c'] or match['d']}")
    found.append(_TEXT.sub(r"\1", plain).strip())
    return list(dict.fromkeys(text for text in found if text))


def _tidy(answer: str) -> str:
    """Without what only sets type: other sizes of fractions and brackets, thin spaces, a final period."""
    text = answer.strip().strip("$").strip().removesuffix(".").strip()
    for spelt, plain in (("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\left", ""), ("\\right", ""), ("\\!", "")):
        text = text.replace(spelt, plain)
    for space in ("\\,", "\\;", "\\ ", "~"):
        text = text.replace(space, " ")
    return " ".join(text.split())


FORMAT = RecordFormat(
    name="math",
    about="MATH and its like: final answers in \\boxed{} or in a field `answer` (.jsonl, .json, .parquet, directories)",
    family="short_answer",
    convert=convert,
    settings={
        "answers": Setting("`numbers` leaves out rows whose answer is no number", "all", choices=("all", "numbers"))
    },
    shots=4,
)
