"""`simpleqa`: a question and its short answer, which no model judges here: it is compared as number, day or text."""

from __future__ import annotations

from securebench.importers.base import PackRow, Record, Request
from securebench.importers.final_answers import accepted_answers
from securebench.importers.record_format import RecordFormat


def convert(record: Record, _: Request) -> PackRow:
    """Raises CannotConvert."""
    return PackRow(
        id=record.name_of("id", "original_index") or record.numbered("simpleqa"),
        input={"question": record.text("problem", "question")},
        eval={"accepted_answers": accepted_answers([record.text("answer")])},
        metadata={"topic": topic} if (topic := record.optional_text("topic")) else {},
    )


FORMAT = RecordFormat(
    name="simpleqa",
    about="SimpleQA and its like: a question and its short answer (.csv, .jsonl, .parquet)",
    family="short_answer",
    convert=convert,
)
