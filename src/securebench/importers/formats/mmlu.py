"""`mmlu`: questions with options and a key, also MMLU-Pro, ARC and others that are written the same way.

CSV files without a first line of names are taken as MMLU publishes them: question, A, B, C, D, answer; their names say
the subject."""

from __future__ import annotations

import re

from securebench.importers.asking import SOLUTION, SUBJECT
from securebench.importers.base import CannotConvert, PackRow, Record, Request
from securebench.importers.formats.choices import options_of, right_index
from securebench.importers.record_format import RecordFormat

_FILE = re.compile(r"(?P<subject>[a-z_]+?)_(?:test|dev|val)\.(?:csv|tsv)(?:\.gz)?")


def convert(record: Record, _: Request) -> PackRow:
    """Raises CannotConvert."""
    options = options_of(record)
    subject = record.optional_text("subject", "category") or _subject(record.place.file)
    public = {"question": record.text("question", "Question", "input"), "choices": list(options)}
    private: dict[str, object] = {"answer": _key(record, options)}
    if worked := record.optional_text("cot_content", "explanation"):
        private[SOLUTION] = worked
    return PackRow(
        id=record.name_of("id", "question_id") or record.numbered(subject or "mmlu"),
        input=public,  # type: ignore[arg-type]
        eval=private,  # type: ignore[arg-type]
        metadata={SUBJECT: subject} if subject else {},
        words={SUBJECT: subject.replace("_", " ")} if subject else {},
    )


def _key(record: Record, options: list[str]) -> int:
    choices = record.get("choices")
    labels = choices.get("label") if isinstance(choices, dict) else None
    answer, index = record.get("answer", "answerKey", "target", "Answer"), record.get("answer_index")
    if answer is None:
        raise CannotConvert("has no key", "expected `answer` or `answerKey`")
    right = right_index(answer, options, labels if isinstance(labels, list) else None)
    if index is not None and str(index).strip() != str(right):
        raise CannotConvert("has two keys that contradict each other", "answer and answer_index")
    return right


def _subject(path: str) -> str | None:
    match = _FILE.fullmatch(path.rpartition("/")[2].lower())
    return match["subject"] if match else None


FORMAT = RecordFormat(
    name="mmlu",
    about="MMLU, MMLU-Pro, ARC and their like: options and a key (.csv without or with names, .jsonl, .parquet)",
    family="multiple_choice",
    convert=convert,
    words=(SUBJECT,),
    columns=("question", "A", "B", "C", "D", "answer"),
)
